import { render } from 'preact';
import { App } from './app.tsx';
import { CertificatePage } from './certificate/certificate-page.tsx';
import { findCertificateId } from './place.js';

const id = findCertificateId();
render(id === undefined ? <App /> : <CertificatePage id={id} />, document.querySelector('#page')!);
