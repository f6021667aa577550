import t from 'tap';
import { makeAzureStore } from '../../support/azure-container.js';
import { startAzurite } from '../../support/azurite.js';
import { testStore } from '../../support/store-cases.js';

const azurite = await startAzurite(t);

testStore(t, (t) => makeAzureStore(t, azurite));
