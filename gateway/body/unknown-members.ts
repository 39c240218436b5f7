/**
 * Unknown members of a JSON body. They are ignored, so that clients can send members of later versions. A
 * misspelt member is ignored as well, so sandbox tenants get a warning.
 */
import type { z } from 'zod'

/** Limits of the warning. */
const NAMED_MAX = 10
const POINTER_CHARS_MAX = 64

interface Shape {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly catchall?: z.ZodType
  readonly innerType?: z.ZodType
  readonly in?: z.ZodType
  readonly out?: z.ZodType
  readonly element?: z.ZodType
  readonly items?: readonly z.ZodType[]
  readonly valueType?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly left?: z.ZodType
  readonly right?: z.ZodType
  readonly getter?: () => z.ZodType
}

/** JSON pointers (RFC 6901) of at most ten unknown members, of valid and invalid bodies. */
export function unknownMembers(schema: z.ZodType, value: unknown): readonly string[] {
  const found: string[] = []
  walk(schema, value, '', found)
  return found
}

function walk(schema: z.ZodType, value: unknown, path: string, found: string[]): void {
  if (typeof value !== 'object' || value === null || found.length >= NAMED_MAX) return
  const def = schema._zod.def as unknown as Shape
  const inner = innerOf(def)
  if (inner !== undefined) walk(inner, value, path, found)
  else if (def.options !== undefined) fewest(def.options, value, path, found)
  else if (def.left !== undefined && def.right !== undefined)
    both(def.left, def.right, value, path, found)
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const itemSchema = def.element ?? def.items?.[index]
      if (itemSchema !== undefined) walk(itemSchema, item, `${path}/${index}`, found)
    }
  } else if (def.type === 'record' && def.valueType !== undefined) {
    for (const [name, item] of Object.entries(value)) {
      walk(def.valueType, item, `${path}/${escaped(name)}`, found)
    }
  } else if (def.shape !== undefined) {
    for (const [name, item] of Object.entries(value)) {
      const known = Object.hasOwn(def.shape, name) ? def.shape[name] : undefined
      const pointer = `${path}/${escaped(name)}`
      if (known !== undefined) walk(known, item, pointer, found)
      else if (def.catchall === undefined && found.length < NAMED_MAX) found.push(pointer)
    }
  }
}

/** The input schema within optional, default, lazy, transform and preprocess. */
function innerOf({ innerType, in: input, out, getter }: Shape): z.ZodType | undefined {
  return innerType ?? (input?._zod.def.type === 'transform' ? out : input) ?? getter?.()
}

/** For a union: the unknown members of the alternative with the fewest. */
function fewest(
  options: readonly z.ZodType[],
  value: unknown,
  path: string,
  found: string[],
): void {
  let best: string[] | undefined
  for (const option of options) {
    if (!takesObjects(option, Array.isArray(value))) continue
    const unknown: string[] = []
    walk(option, value, path, unknown)
    if (best === undefined || unknown.length < best.length) best = unknown
  }
  found.push(...(best ?? []).slice(0, NAMED_MAX - found.length))
}

/** For an intersection: members that both sides do not know. */
function both(
  left: z.ZodType,
  right: z.ZodType,
  value: unknown,
  path: string,
  found: string[],
): void {
  const [unknownLeft, unknownRight]: [string[], string[]] = [[], []]
  walk(left, value, path, unknownLeft)
  walk(right, value, path, unknownRight)
  const unknown = unknownLeft.filter((pointer) => unknownRight.includes(pointer))
  found.push(...unknown.slice(0, NAMED_MAX - found.length))
}

/** True if a schema accepts objects (or arrays). Alternatives that do not are skipped. */
function takesObjects(schema: z.ZodType, isArray: boolean): boolean {
  const def = schema._zod.def as unknown as Shape
  const inner = innerOf(def)
  if (inner !== undefined) return takesObjects(inner, isArray)
  if (def.options !== undefined) return def.options.some((option) => takesObjects(option, isArray))
  if (def.left !== undefined || def.type === 'any' || def.type === 'unknown') return true
  return isArray
    ? def.element !== undefined || def.items !== undefined
    : def.shape !== undefined || def.type === 'record'
}

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/**
 * The value of `svc-warnings`: a list of structured fields (RFC 9651), `unknown-member;pointer="#/name"`. Names come
 * from the client, so unsafe characters are replaced by `?`.
 */
export function warningsHeader(pointers: readonly string[]): string {
  return pointers
    .slice(0, NAMED_MAX)
    .map((pointer) => {
      const safe = pointer.replaceAll(/[^A-Za-z0-9_.~/-]/g, '?').slice(0, POINTER_CHARS_MAX)
      return `unknown-member;pointer="#${safe}"`
    })
    .join(', ')
}
