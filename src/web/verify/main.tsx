import { render } from 'preact';

render(<h1>Verify a proof</h1>, document.querySelector('#page')!);
