import { createRoot } from 'react-dom/client';

createRoot(document.querySelector('#page')!).render(<h1>Dashboard</h1>);
