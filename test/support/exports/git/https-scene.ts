/** An https server and, for each test, a repository of its own there. */
import type { Test } from 'tap';
import type {
  DestinationContext,
  OpenDestination,
} from '../../../../src/server/exports/destinations/destination.js';
import type { GitOptions } from '../../../../src/server/exports/destinations/git/git.js';
import { gitContext, openGitUntil } from './destination.js';
import { type GitHttpsServer, GOOD_TOKEN, startGitHttps } from './https-server.js';
import { type GitRepository, makeRepositoriesDirectory, makeRepository } from './repositories.js';

export type RepositoryScene = {
  repository: GitRepository;
  context: DestinationContext;
  /** Opens the branch `main` with the good token, as long as nothing else is given. */
  open(
    members?: { token?: string; branch?: string; prefix?: string },
    options?: GitOptions,
  ): Promise<OpenDestination>;
};

/** Starts the server until the test file ends. */
export async function startHttpsScene(
  file: Test,
): Promise<{ server: GitHttpsServer; setUp(test: Test): Promise<RepositoryScene> }> {
  const root = await makeRepositoriesDirectory(file);
  const server = await startGitHttps(file, root);
  let count = 0;
  const setUp = async (test: Test) => {
    count += 1;
    const repository = await makeRepository(root, `r${count}.git`);
    const context = await gitContext(test, { url: `${server.origin}/${repository.name}`, token: GOOD_TOKEN });
    const open: RepositoryScene['open'] = (members = {}, options = {}) => {
      const destination = { ...context.destination, ...members };
      return openGitUntil(test, { ...context, destination }, { caFile: server.caFile, ...options });
    };
    return { repository, context, open };
  };
  return { server, setUp };
}
