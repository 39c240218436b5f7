/** An operation, its message and its handler have one name, so that the searches of docs/concepts/walks.md find all three. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { routes } from '../../gateway/route-table.js'

/** Messages of entities (actors/domain/entities/messages.ts). */
const ENTITY = new Set(['list', 'create', 'read', 'update', 'remove'])

const asked = routes.flatMap(({ operationId, target }) =>
  target.via === 'actor'
    ? [{ operationId, kind: target.kind, message: `${target.address.name}.${target.kind}` }]
    : [],
)

test('a message has the name of its operation, unless it serves several', (t) => {
  const others = asked.filter(({ operationId, kind }) => operationId !== kind)
  t.true(asked.length - others.length > 300)
  const serves = (message: string) => asked.filter((one) => one.message === message).length
  t.deepEqual(
    others.filter(({ kind, message }) => !ENTITY.has(kind) && serves(message) === 1),
    [],
  )
})

const linesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))

test('the searches of the page find the route of each operation, and the handler of each message once', (t) => {
  const page = readFileSync('docs/concepts/walks.md', 'utf8')
  const searching = (search: RegExp, lines: readonly string[]) => {
    const [, pattern = ''] = search.exec(page)!
    return (name: string) => {
      const named = new RegExp(pattern.replace('NAME', name))
      return lines.filter((line) => named.test(line)).length
    }
  }
  const routesOf = searching(/`grep -rn "(.*NAME.*)" gateway\/routes`/, linesOf('gateway/routes'))
  const unseen = routes.filter(({ operationId }) => routesOf(operationId) === 0)
  t.deepEqual(unseen, [])
  const ofHandler = /`grep -rnE '(.*NAME.*)' actors`/
  const handlersOf = searching(ofHandler, linesOf('actors'))
  const kinds = [...new Set(asked.map(({ kind }) => kind))].filter((kind) => !ENTITY.has(kind))
  const several = kinds.filter((kind) => handlersOf(kind) !== 1)
  t.deepEqual(several, [])
  const entities = readFileSync('actors/platform/entity-handlers.ts', 'utf8').split('\n')
  t.true([...ENTITY].every((kind) => searching(ofHandler, entities)(kind) === 1))
})
