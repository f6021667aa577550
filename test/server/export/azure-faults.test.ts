import t from 'tap';
import { makeAzureStore } from '../../support/azure-container.js';
import { startAzurite } from '../../support/azurite.js';
import { testFaults } from '../../support/store-faults.js';

const azurite = await startAzurite(t);

testFaults(t, (t) => makeAzureStore(t, azurite));
