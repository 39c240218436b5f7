/** Events are of the catalogue: other fields do not compile. */
import test from 'ava'
import { EVENT_CATALOGUE, type Fields } from '../../../actors/domain/event-catalogue.js'
import { catalogued } from '../../../actors/domain/events.js'

const party = { type: 'organization', id: '1' }
const about = { actor: party, resource: party, requestId: undefined }

test('an event has actor, resource, request id and the fields of its type', (t) => {
  t.deepEqual(catalogued('org.created', about, { name: 'Acme', slug: 'acme' }), {
    type: 'org.created',
    data: { actor: party, resource: party, request_id: null, name: 'Acme', slug: 'acme' },
  })
  // @ts-expect-error a field is missing
  catalogued('org.created', about, { name: 'Acme' })
  // @ts-expect-error a field has another type
  catalogued('org.created', about, { name: 'Acme', slug: 1 })
  // @ts-expect-error the type has no such field
  catalogued('org.created', about, { name: 'Acme', slug: 'acme', plan: 'Team' })
  // @ts-expect-error the type has no fields
  catalogued('org.suspended', about, { name: 'Acme' })
})

test('every example is of its schema', (t) => {
  const types: [string, Fields][] = Object.values(EVENT_CATALOGUE).flatMap((each) =>
    Object.entries(each),
  )
  for (const [type, fields] of types)
    for (const [name, [schema, example]] of Object.entries(fields))
      t.true(example === undefined || schema.safeParse(example).success, `${type} ${name}`)
})
