output "database_address" {
  description = "For database-url: postgres://attest:<password>@<this>:5432/attest?sslmode=require"
  value       = google_sql_database_instance.attest.private_ip_address
}
