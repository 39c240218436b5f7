/**
 * The receivers of docs/guides/webhooks/webhook-receivers.md: the one in TypeScript over the shared table. The long form
 * runs those in other languages.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import test from 'ava'
import { freshDatabase } from '../support/storage/database.js'
import { verify } from './receiver.js'
import { given, TABLE } from './table.js'

const PAGE = readFileSync('docs/guides/webhooks/webhook-receivers.md', 'utf8')
const RECEIVERS = [
  'receiver.ts',
  'receiver.py',
  'receiver.sh',
  'Receiver.java',
  'go/receiver.go',
  'receiver.rb',
  'receiver.php',
  'Receiver.cs',
]

for (const file of RECEIVERS) {
  test(`docs/guides/webhooks/webhook-receivers.md shows ${file} as it is tested`, (t) => {
    t.true(PAGE.includes(readFileSync(join('test', 'receivers', file), 'utf8').trim()))
  })
}

test('the receiver in TypeScript agrees with the table', (t) => {
  for (const one of TABLE) {
    const { headers, body: sent, secret, now } = given(one)
    t.is(verify(headers, sent, secret, now), one.verdict === 'genuine', one.title)
  }
})

test('the statements of docs/guides/webhooks/webhook-receivers.md let one of many of the same id through', async (t) => {
  const [create, keep] = [...PAGE.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text]) => text!)
  const fresh = await freshDatabase(t)
  const clients = Array.from({ length: 8 }, () => new Client(fresh.superuserUrl))
  await Promise.all(clients.map((client) => client.connect()))
  try {
    const [first, second] = clients
    await first!.query(create!)
    const once = (id: string) =>
      Promise.all(
        clients.map(async (client) => (await client.query(keep!, [id])).rowCount ?? 0),
      ).then((counts) => counts.filter((count) => count === 1).length)
    t.is(await once('a'), 1)
    t.is(await once('a'), 0)

    await first!.query('begin')
    t.is((await first!.query(keep!, ['b'])).rowCount, 1)
    const waiting = second!.query(keep!, ['b'])
    await first!.query('rollback')
    t.is((await waiting).rowCount, 1, 'where the work failed, the next one does it')
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
})
