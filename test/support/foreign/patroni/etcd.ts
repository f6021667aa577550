import { provide } from '../provide.js';

/** etcd. A test that imports this is skipped where it cannot be had. */
export const ETCD = await provide('etcd');
