/** Properties of the SCIM parser and of PATCH, and a comparison with an independent implementation. */
import test from 'ava'
import * as fc from 'fast-check'
import { scimPatch } from 'scim-patch'
import { parse as parseElsewhere } from 'scim2-parse-filter'
import { ScimFault } from '../../../../actors/identity/scim/faults.js'
import { type Filter, parseFilter } from '../../../../actors/identity/scim/filter.js'
import { matches } from '../../../../actors/identity/scim/filter-match.js'
import { patched } from '../../../../actors/identity/scim/patch.js'
import { readResource, type Resource } from '../../../../actors/identity/scim/resource.js'
import { predicateOf } from '../../../../actors/identity/scim/resource-filter.js'
import { searched } from '../../../../actors/identity/scim/search.js'
import { attributeOf, USER_RESOURCE, USER_SCHEMA } from '../../../../actors/identity/scim/schema.js'
import type { ScimUserRow } from '../../../../storage/identity/scim-users.js'

const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const SEEDED = { seed: 7_644, numRuns: 600 } as const

type Json = Record<string, unknown>

const name = fc.constantFrom(
  'userName',
  'externalId',
  'active',
  'emails.value',
  'meta.lastModified',
)
const operator = fc.constantFrom('eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le')
// The other parser keeps the escapes of JSON strings, so the texts need none.
const text = fc.string({ maxLength: 12 }).map((each) => each.replaceAll(/[\0"\\]/g, ''))
const value = fc.oneof(text, fc.boolean())
const comparison = fc.oneof(
  fc
    .tuple(name, operator, value)
    .map(([path, op, each]) => `${path} ${op} ${JSON.stringify(each)}`),
  name.map((path) => `${path} pr`),
)
const { filter } = fc.letrec<{ filter: string }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    comparison,
    fc
      .tuple(tie('filter'), fc.constantFrom('and', 'or'), tie('filter'))
      .map((all) => all.join(' ')),
    tie('filter').map((each) => `(${each})`),
    tie('filter').map((each) => `not (${each})`),
  ),
}))

/** The tree as nested arrays, with `and` and `or` flattened, in the words of both parsers. */
function shape(tree: Filter): unknown {
  switch (tree.tag) {
    case 'and':
    case 'or':
      return [tree.tag, ...flat(tree.tag, tree.parts.map(shape))]
    case 'not':
      return ['not', shape(tree.part)]
    case 'present':
      return ['pr', pathOf(tree.path)]
    case 'compare':
      return [tree.operator, pathOf(tree.path), tree.value]
    case 'value':
      return ['[]', pathOf(tree.path), shape(tree.filter)]
  }
}
const pathOf = ({ name: own, sub }: { name: string; sub: string | null }) =>
  sub === null ? own : `${own}.${sub}`
const flat = (tag: string, parts: readonly unknown[]): unknown[] =>
  parts.flatMap((part) => (Array.isArray(part) && part[0] === tag ? part.slice(1) : [part]))

function foreign(tree: ReturnType<typeof parseElsewhere>): unknown {
  switch (tree.op) {
    case 'and':
    case 'or':
      return [tree.op, ...flat(tree.op, tree.filters.map(foreign))]
    case 'not':
      return ['not', foreign(tree.filter)]
    case 'pr':
      return ['pr', tree.attrPath]
    case '[]':
      return ['[]', tree.attrPath, foreign(tree.valFilter)]
    default:
      return [tree.op, tree.attrPath, tree.compValue]
  }
}

test('a generated filter is read as an independent parser reads it', (t) => {
  fc.assert(
    fc.property(filter, (each) => {
      fc.pre(
        each.length < 4_000 &&
          (each.match(/ (?:pr|eq|ne|co|sw|ew|gt|ge|lt|le)\b/g) ?? []).length < 60,
      )
      t.deepEqual(shape(parseFilter(each)), foreign(parseElsewhere(each)))
    }),
    SEEDED,
  )
})

test('any text is a filter or a fault of the caller', (t) => {
  const pieces = fc.array(
    fc.constantFrom(
      '(',
      ')',
      '[',
      ']',
      ' ',
      'and',
      'or',
      'not',
      'userName',
      'eq',
      'pr',
      '"x"',
      '"',
      '\\',
      'true',
    ),
    { maxLength: 40 },
  )
  fc.assert(
    fc.property(
      fc.oneof(
        pieces.map((all) => all.join(' ')),
        fc.string({ maxLength: 80 }),
      ),
      (each) => {
        try {
          parseFilter(each)
        } catch (error) {
          t.true(error instanceof ScimFault, String(error))
        }
      },
    ),
    SEEDED,
  )
})

const type = fc.constantFrom('work', 'home', 'other')
const word = fc.constantFrom('a', 'b', 'c', 'd')
const entry = fc.record({ value: word, type }, { requiredKeys: ['value', 'type'] })
/** One value of each type, so that a value filter selects one. */
const entries = fc.uniqueArray(entry, { selector: (each) => each.type, minLength: 1, maxLength: 3 })
const user = fc.record(
  {
    userName: word,
    title: word,
    displayName: word,
    name: fc.record({ givenName: word, familyName: word }, { requiredKeys: ['givenName'] }),
    emails: entries,
  },
  { requiredKeys: ['userName', 'emails', 'name'] },
)

/** Operations whose meaning the RFC settles, and which both implementations have. */
const operation: fc.Arbitrary<Json> = fc.oneof(
  fc.record({
    op: fc.constantFrom('add', 'replace'),
    path: fc.constantFrom('title', 'displayName', 'name.givenName', 'name.familyName'),
    value: word,
  }),
  fc.record({
    op: fc.constant('remove'),
    path: fc.constantFrom('title', 'displayName', 'name.familyName'),
  }),
  fc.record({
    op: fc.constantFrom('add', 'replace'),
    value: fc.record({ title: word, displayName: word }),
  }),
  fc.record({ op: fc.constant('replace'), path: fc.constant('emails'), value: entries }),
  fc.record({ op: fc.constant('add'), path: fc.constant('emails'), value: entries }),
  fc.record({
    op: fc.constant('replace'),
    path: type.map((each) => `emails[type eq "${each}"].value`),
    value: word,
  }),
  fc.record({ op: fc.constant('remove'), path: type.map((each) => `emails[type eq "${each}"]`) }),
)

test('PATCH agrees with scim-patch where both accept the operations', (t) => {
  let compared = 0
  fc.assert(
    fc.property(user, fc.array(operation, { minLength: 1, maxLength: 4 }), (given, operations) => {
      const before = readResource({ schemas: [USER_SCHEMA], ...given })
      const elsewhere = structuredClone({ schemas: [USER_SCHEMA], ...before })
      let theirs: Json
      try {
        theirs = scimPatch(elsewhere as never, structuredClone(operations) as never) as never
      } catch {
        // It also refuses to remove what is absent, which RFC 7644 section 3.5.2.2 permits.
        return
      }
      let ours: Resource
      try {
        ours = patched(before, { schemas: [PATCH], Operations: operations })
      } catch (error) {
        // A filter without a match has no target (RFC 7644 section 3.5.2). The other one ignores some of these.
        t.true(error instanceof ScimFault && error.refusal.scimType === 'noTarget', String(error))
        return
      }
      const { schemas: _schemas, ...rest } = theirs
      compared += 1
      t.deepEqual(bare(ours), bare(rest), JSON.stringify({ given, operations }))
    }),
    SEEDED,
  )
  t.true(compared > 100, String(compared))
})

/** Without what is empty: RFC 7643 section 2.5 makes no difference between empty and absent. */
function bare(resource: Json): Json {
  const kept = Object.entries(resource).filter(
    ([, each]) => each !== undefined && !(Array.isArray(each) && each.length === 0),
  )
  return Object.fromEntries(kept)
}

test('any PATCH body is applied or a fault of the caller, and the resource keeps its shape', (t) => {
  const path = fc.oneof(
    fc.constantFrom(
      'emails',
      'emails[type eq "work"]',
      'emails.value',
      'name',
      'active',
      'userName',
      'roles',
      'id',
      '__proto__',
      'constructor.prototype',
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User',
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value',
    ),
    fc.string({ maxLength: 30 }),
  )
  const any = fc.record(
    {
      op: fc.constantFrom('add', 'Replace', 'REMOVE', 'x'),
      path,
      value: fc.oneof(fc.jsonValue({ maxDepth: 3 }), entries),
    },
    { requiredKeys: ['op'] },
  )
  fc.assert(
    fc.property(user, fc.array(any, { maxLength: 5 }), (given, operations) => {
      const before = readResource({ schemas: [USER_SCHEMA], ...given })
      const copy = structuredClone(before)
      try {
        const after = patched(before, { schemas: [PATCH], Operations: operations })
        // Reading it again changes nothing: it is in canonical form.
        t.deepEqual(readResource({ schemas: [USER_SCHEMA], ...after }), after)
      } catch (error) {
        t.true(error instanceof ScimFault, String((error as Error).stack))
      }
      t.deepEqual(before, copy)
      t.deepEqual(Object.keys(Object.prototype), [])
    }),
    SEEDED,
  )
})

test('a value filter has the operators of the RFC', (t) => {
  const emails = attributeOf(USER_RESOURCE, USER_SCHEMA, 'emails')!
  const one = { value: 'Ada@corp.test', type: 'work', primary: true }
  for (const [each, expected] of [
    ['value eq "ada@CORP.test"', true],
    ['value ew ".test"', true],
    ['value sw "ada" and not (type eq "home")', true],
    ['primary eq "True"', true],
    ['display pr or primary ne false', true],
    ['display eq null', true],
    ['value gt "b"', false],
    ['type ne "work"', false],
  ] as const)
    t.is(matches(parseFilter(each), one, emails), expected, each)
  t.throws(() => matches(parseFilter('nothing eq "x"'), one, emails), { instanceOf: ScimFault })
})

test('a search that takes too long ends, and a short one pages through what it finds', async (t) => {
  const rows = Array.from({ length: 2_500 }, (_, nth) => ({ id: String(nth) }) as ScimUserRow)
  const read = async ({ offset, limit }: { offset: number; limit: number }) =>
    rows.slice(offset, offset + limit)
  const endsInOne = predicateOf(parseFilter('id ew "1"'), USER_RESOURCE)
  const search = (stepMs: number) => {
    let nowMs = 0
    const clock = { monotonicMs: () => (nowMs += stepMs) }
    return searched({ offset: 3, limit: 2 }, clock, endsInOne, ({ id }) => ({ id }), read)
  }
  t.deepEqual(await search(1), { found: [{ id: '31' }, { id: '41' }], total: 250 })
  await t.throwsAsync(search(300), { message: /Too many users/ })
})
