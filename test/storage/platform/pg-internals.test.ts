import { createRequire } from 'node:module'
import test from 'ava'
import pg, { Client, Query } from 'pg'
import { PG_INTERNALS } from '../../../storage/platform/pipeline.js'

type Members = Readonly<Record<string, unknown>>
type Internals = Members & {
  readonly connection: Members & { readonly stream: Members }
  readonly _types: Members
}

const { version } = createRequire(import.meta.url)('pg/package.json') as { version: string }
const client = new Client() as unknown as Internals
const installed: Readonly<Record<keyof typeof PG_INTERNALS, Members>> = {
  utils: (pg as unknown as { readonly utils: Members }).utils,
  client,
  types: client._types,
  connection: client.connection,
  stream: client.connection.stream,
  query: Query.prototype as unknown as Members,
}

for (const [object, members] of Object.entries(PG_INTERNALS)) {
  test(`pg ${version} has the private members of ${object} that storage uses`, (t) => {
    const present = installed[object as keyof typeof PG_INTERNALS]
    t.deepEqual(
      members.filter((name) => present[name] === undefined),
      [],
    )
  })
}

test('a client of pg hands every message to the query that it runs', (t) => {
  const source = String(Client)
  for (const name of PG_INTERNALS.query) {
    t.regex(source, new RegExp(`(activeQuery|query)\\.${name}\\(`), name)
  }
})
