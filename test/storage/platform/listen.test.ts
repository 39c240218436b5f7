import test from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { createListener } from '../../../storage/platform/listen.js'
import { freshDatabase } from '../../support/storage/database.js'

/** Collects the calls of a subscription, and lets a test wait for them. */
function notebook() {
  const lines: string[] = []
  let look: () => void = () => undefined
  const write = (line: string) => {
    lines.push(line)
    look()
  }
  return {
    lines,
    subscription: {
      notified: (payload: string) => write(payload),
      caughtUp: () => write('caught up'),
    },
    async has(count: number) {
      while (lines.length < count) await new Promise<void>((resolve) => (look = resolve))
      return lines
    },
  }
}

async function administrator(url: string) {
  const client = new Client({ connectionString: url })
  await client.connect()
  return {
    notify: (channel: string, payload: string) =>
      client.query('select pg_notify($1, $2)', [channel, payload]),
    killListener: () =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'svc listener' and datname = current_database()`,
      ),
    end: () => client.end(),
  }
}

test('a notification reaches all subscribers, and none that unsubscribed', async (t) => {
  const fresh = await freshDatabase(t)
  const [one, two] = [notebook(), notebook()]
  const { listener } = fresh.database
  const leave = await listener.listen('svc_test', one.subscription)
  await listener.listen('svc_test', two.subscription)
  const admin = await administrator(fresh.superuserUrl)
  await admin.notify('svc_test', 'first')
  t.deepEqual(await one.has(2), ['caught up', 'first'])
  leave()
  await admin.notify('svc_test', 'second')
  t.deepEqual(await two.has(3), ['caught up', 'first', 'second'])
  t.deepEqual(one.lines, ['caught up', 'first'])
  await admin.end()
})

test('after a lost connection it listens again and says that there is something to catch up', async (t) => {
  const fresh = await freshDatabase(t)
  const [early, late] = [notebook(), notebook()]
  const { listener } = fresh.database
  await listener.listen('svc_test', early.subscription)
  await listener.listen('svc_other', late.subscription)
  const admin = await administrator(fresh.superuserUrl)
  for (let round = 1; round <= 3; round += 1) {
    await admin.killListener()
    await early.has(round * 2)
    t.true(listener.connected)
    await admin.notify('svc_test', `round ${round}`)
    await early.has(round * 2 + 1)
  }
  t.deepEqual(early.lines, [
    'caught up',
    'caught up',
    'round 1',
    'caught up',
    'round 2',
    'caught up',
    'round 3',
  ])
  await late.has(4)
  t.deepEqual(late.lines, Array(4).fill('caught up'))
  await admin.end()
})

test('who subscribes while the connection is down is served when it is back', async (t) => {
  const fresh = await freshDatabase(t)
  const [held, during] = [notebook(), notebook()]
  const { listener } = fresh.database
  await listener.listen('svc_test', held.subscription)
  const admin = await administrator(fresh.superuserUrl)
  await admin.killListener()
  while (listener.connected) await new Promise(setImmediate)
  await listener.listen('svc_during', during.subscription)
  await during.has(1)
  await admin.notify('svc_during', 'here')
  t.deepEqual(await during.has(2), ['caught up', 'here'])
  await admin.end()
})

test('a wrong address fails the first subscription', async (t) => {
  const listener = createListener({
    options: { host: '/nowhere', user: 'x', database: 'x' },
    log: silentLogger,
  })
  await t.throwsAsync(listener.listen('svc_test', { notified: () => undefined }))
  await listener.close()
})

test('an invalid channel name is refused', async (t) => {
  const fresh = await freshDatabase(t)
  await t.throwsAsync(
    fresh.database.listener.listen('x; drop table events', { notified: () => undefined }),
    { message: /valid channel name/ },
  )
})
