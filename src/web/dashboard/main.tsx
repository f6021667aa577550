import './style.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { App } from './app.js';
import { createQueryClient } from './query-client.js';

const element = document.querySelector('#page');
if (element === null) throw new Error('the page has no #page');
createRoot(element).render(
  <StrictMode>
    <QueryClientProvider client={createQueryClient()}>
      <Router base="/dashboard">
        <App />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
