import t from 'tap';
import { makeGcsStore } from '../../../../support/exports/gcs/open-bucket.js';
import { testStore } from '../../../../support/exports/store-cases.js';

testStore(t, makeGcsStore);
