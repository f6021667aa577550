import './style.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { render } from 'preact';
import { Router } from 'wouter';
import { App } from './app.js';
import { createQueryClient } from './query-client.js';

const element = document.querySelector('#page');
if (element === null) throw new Error('the page has no #page');
render(
  <QueryClientProvider client={createQueryClient()}>
    <Router base="/dashboard">
      <App />
    </Router>
  </QueryClientProvider>,
  element,
);
