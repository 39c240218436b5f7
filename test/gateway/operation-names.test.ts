/** An operation, its message and its handler have one name, so that one search finds all three. */
import test from 'ava'
import { routes } from '../../gateway/route-table.js'

/** Messages of entities (actors/domain/entities/messages.ts). */
const ENTITY = new Set(['list', 'create', 'read', 'update', 'remove'])

test('a message has the name of its operation, unless it serves several', (t) => {
  const asked = routes.flatMap(({ operationId, target }) =>
    target.via === 'actor'
      ? [{ operationId, kind: target.kind, message: `${target.address.name}.${target.kind}` }]
      : [],
  )
  const others = asked.filter(({ operationId, kind }) => operationId !== kind)
  t.true(asked.length - others.length > 300)
  const serves = (message: string) => asked.filter((one) => one.message === message).length
  t.deepEqual(
    others.filter(({ kind, message }) => !ENTITY.has(kind) && serves(message) === 1),
    [],
  )
})
