import t from 'tap';
import { makeAzureStore } from '../../../../support/exports/azure-container.js';
import { startAzurite } from '../../../../support/exports/azurite.js';
import { testStore } from '../../../../support/exports/store-cases.js';

const azurite = await startAzurite(t);

testStore(t, (t) => makeAzureStore(t, azurite));
