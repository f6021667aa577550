import t from 'tap';
import { makeGcsStore } from '../../support/exports/gcs/open-bucket.js';
import { testFaults } from '../../support/exports/store-faults.js';

testFaults(t, makeGcsStore);
