import t from 'tap';
import { makeGcsStore } from '../../support/gcs/open-bucket.js';
import { testStore } from '../../support/store-cases.js';

testStore(t, makeGcsStore);
