/** Every member of a request that is an email address has the one type. */
import test from 'ava'
import type { z } from 'zod'
import { Email, SoughtEmail, TypedEmail } from '../../gateway/routes/identity/user-shapes.js'
import { routes } from '../../gateway/route-table.js'

const TYPES: ReadonlySet<unknown> = new Set([Email, SoughtEmail, TypedEmail])
/** `client_email` of a key file of Google names the issuer of a JWT. */
const NAME = /(?:^|(?<!^client)_)e?mail(?:_address)?$/

type Definition = {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly innerType?: z.ZodType
  readonly element?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly in?: z.ZodType
  readonly left?: z.ZodType
  readonly right?: z.ZodType
}

const definitionOf = (schema: z.ZodType) => schema.def as unknown as Definition

/** Without what makes a member optional. */
function bare(schema: z.ZodType): z.ZodType {
  const { innerType } = definitionOf(schema)
  return innerType === undefined ? schema : bare(innerType)
}

/** The members with the name of an address, in all parts of a schema. */
function* addressesIn(schema: z.ZodType, seen = new Set<z.ZodType>()): Generator<z.ZodType> {
  if (seen.has(schema)) return
  seen.add(schema)
  const {
    shape = {},
    innerType,
    element,
    options = [],
    in: input,
    left,
    right,
  } = definitionOf(schema)
  for (const [name, member] of Object.entries(shape)) {
    const kind = bare(member)
    if (NAME.test(name) && definitionOf(kind).type !== 'never') yield kind
  }
  const parts = [...Object.values(shape), innerType, element, ...options, input, left, right]
  for (const part of parts) if (part !== undefined) yield* addressesIn(part, seen)
}

test('a member that is named as an address has the type of addresses', (t) => {
  let found = 0
  for (const route of routes) {
    const body = route.body !== undefined && 'schema' in route.body ? route.body.schema : undefined
    for (const schema of [route.query, body] as readonly (z.ZodType | undefined)[]) {
      if (schema === undefined) continue
      for (const member of addressesIn(schema)) {
        found += 1
        t.true(TYPES.has(member), `${route.method} ${route.path}`)
      }
    }
  }
  t.true(found >= 14, String(found))
})
