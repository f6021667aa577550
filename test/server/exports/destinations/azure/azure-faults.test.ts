import t from 'tap';
import { makeAzureStore } from '../../../../support/exports/azure-container.js';
import { startAzurite } from '../../../../support/exports/azurite.js';
import { testFaults } from '../../../../support/exports/store-faults.js';

const azurite = await startAzurite(t);

testFaults(t, (t) => makeAzureStore(t, azurite));
