/** Generates a minimal value of an OpenAPI schema. */
import { randomUUID } from 'node:crypto'
import type { Json } from '../api.js'

export type Schema = Json & {
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
}

export type Sampler = (schema: Schema) => unknown

const TEXTS = [
  'https://receiver.example.com/hook',
  'someone@example.com',
  'example',
  '1',
  `0x${'1'.repeat(64)}`,
]

/**
 * @param document the OpenAPI document with the referenced components
 * @param members values of members that schemas cannot describe, by name
 */
export function sampler(document: Json, members: Readonly<Record<string, unknown>> = {}): Sampler {
  const components = (document['components'] as Json)['schemas'] as Record<string, Schema>

  function sample(schema: Schema): unknown {
    const reference = schema['$ref']
    if (typeof reference === 'string') return sample(components[lastOf(reference)] ?? {})
    if ('const' in schema) return schema['const']
    if (Array.isArray(schema['enum'])) return (schema['enum'] as unknown[])[0]
    const choices = schema.anyOf ?? schema.oneOf
    if (choices !== undefined) return sample(choices[0] ?? {})
    switch (schema['type']) {
      case 'object': {
        const required = (schema['required'] ?? []) as string[]
        return Object.fromEntries(
          required.map((name) => [name, members[name] ?? sample(schema.properties?.[name] ?? {})]),
        )
      }
      case 'array':
        return Number(schema['minItems'] ?? 0) > 0 ? [sample(schema.items ?? {})] : []
      case 'integer':
      case 'number':
        return schema['minimum'] ?? 1
      case 'boolean':
        return false
      default:
        return text(schema)
    }
  }
  return sample
}

const lastOf = (reference: string): string => reference.split('/').at(-1) ?? ''

function text(schema: Schema): string {
  if (schema['format'] === 'uuid') return randomUUID()
  if (schema['format'] === 'date-time') return '2030-01-01T00:00:00.000Z'
  if (schema['format'] === 'email') return 'someone@example.com'
  const pattern = new RegExp(String(schema['pattern'] ?? ''), 'u')
  const long = 'x'.repeat(Number(schema['minLength'] ?? 0))
  return [...TEXTS, long].find((one) => pattern.test(one) && one.length >= long.length) ?? long
}
