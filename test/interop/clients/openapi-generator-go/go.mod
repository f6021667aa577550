module example.com/your/module

go 1.25.8
