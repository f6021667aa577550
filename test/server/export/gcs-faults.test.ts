import t from 'tap';
import { makeGcsStore } from '../../support/gcs/open-bucket.js';
import { testFaults } from '../../support/store-faults.js';

testFaults(t, makeGcsStore);
