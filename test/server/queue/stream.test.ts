/** The stream of jobs as an operator has it: taken where it does what is needed, put right where it does not. */
import { connect, type JetStreamManager, RetentionPolicy } from 'nats';
import t, { type Test } from 'tap';
import { ensureConsumer, ensureStream, type StreamWish } from '../../../src/server/queue/stream.js';
import { testNatsPrefix, testNatsUrl } from '../../support/servers/shared-nats.js';

async function open(test: Test): Promise<{ manager: JetStreamManager; wish: StreamWish }> {
  const { host, username, password } = new URL(await testNatsUrl());
  const connection = await connect({ servers: host, user: username, pass: password });
  const name = testNatsPrefix(test);
  test.teardown(() => connection.close());
  return {
    manager: await connection.jetstreamManager(),
    wish: { name, subjects: `${name}.>`, replicas: 1 },
  };
}

t.test('a changed stream is left unchanged while it meets the requirements', async (t) => {
  const { manager, wish } = await open(t);
  await ensureStream(manager, wish);
  const { config } = await manager.streams.info(wish.name);
  const changed = { ...config, description: 'mine', max_age: 86_400e9, max_msgs_per_subject: 4 };
  await manager.streams.update(wish.name, changed);
  await ensureStream(manager, wish);
  const { config: after } = await manager.streams.info(wish.name);
  t.match(after, { description: 'mine', max_age: 86_400e9, max_msgs_per_subject: 4 });
  await ensureConsumer(manager, wish.name, 'seal', `${wish.name}.seal.>`);
  await manager.consumers.update(wish.name, 'seal', { ack_wait: 30e9 });
  await ensureConsumer(manager, wish.name, 'seal', `${wish.name}.seal.>`);
  t.equal((await manager.consumers.info(wish.name, 'seal')).config.ack_wait, 30e9);
});

t.test("a consumer of an earlier version gets today's acknowledgement timeout", async (t) => {
  const { manager, wish } = await open(t);
  await ensureStream(manager, wish);
  await ensureConsumer(manager, wish.name, 'seal', `${wish.name}.seal.>`);
  const { config } = await manager.consumers.info(wish.name, 'seal');
  t.ok(config.ack_wait! <= 5e9, 'a dead worker holds no message for longer');
  await manager.consumers.update(wish.name, 'seal', { ack_wait: 60e9 });
  await ensureConsumer(manager, wish.name, 'seal', `${wish.name}.seal.>`);
  t.match((await manager.consumers.info(wish.name, 'seal')).config, config);
});

t.test('only settings that violate the requirements are repaired', async (t) => {
  const { manager, wish } = await open(t);
  await ensureStream(manager, wish);
  const { config } = await manager.streams.info(wish.name);
  await manager.streams.update(wish.name, {
    ...config,
    description: 'mine',
    subjects: [`${wish.name}.other`],
    discard_new_per_subject: false,
    max_msgs_per_subject: -1,
  });
  await ensureStream(manager, wish);
  t.match((await manager.streams.info(wish.name)).config, {
    description: 'mine',
    subjects: [`${wish.name}.>`],
    max_msgs_per_subject: 1,
  });
});

t.test('a stream that cannot be repaired is named with its defect', async (t) => {
  const { manager, wish } = await open(t);
  await manager.streams.add({
    name: wish.name,
    subjects: [wish.subjects],
    retention: RetentionPolicy.Limits,
    max_msgs_per_subject: 1,
  });
  await t.rejects(ensureStream(manager, wish), {
    message: new RegExp(`^the stream ${wish.name} cannot be used as it is \\(retention\\): `),
  });
});

t.test('a single server cannot keep three copies, and logs it', async (t) => {
  const { manager, wish } = await open(t);
  await t.rejects(ensureStream(manager, { ...wish, replicas: 3 }), {
    name: 'NatsError',
    message: /^replicas > 1 not supported/,
  });
});
