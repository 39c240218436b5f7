/** The parts of JSON Schema that forms and filters need. */
import { z } from 'zod'

export type Schema = {
  readonly type?: string | undefined
  readonly format?: string | undefined
  readonly properties?: Readonly<Record<string, Schema>> | undefined
  readonly propertyNames?: Schema | undefined
  readonly additionalProperties?: Schema | undefined
  readonly required?: readonly string[] | undefined
  readonly items?: Schema | undefined
  readonly anyOf?: readonly Schema[] | undefined
  readonly oneOf?: readonly Schema[] | undefined
  readonly enum?: readonly unknown[] | undefined
  readonly not?: object | undefined
  readonly maxLength?: number | undefined
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly description?: string | undefined
  readonly $ref?: string | undefined
  readonly $defs?: Readonly<Record<string, Schema>> | undefined
}

/** The schema of what is sent, and a function that replaces a reference by what it means. */
export function schemaOf(type: z.ZodType) {
  const root = z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' }) as Schema
  const resolved = (schema: Schema): Schema => {
    const name = schema.$ref?.split('/').at(-1)
    return name === undefined ? schema : { ...root.$defs?.[name], ...schema, $ref: undefined }
  }
  return { root, resolved }
}

/** The alternatives of a schema: itself, if it has none. */
export function variantsOf(
  schema: Schema,
  resolved: (schema: Schema) => Schema,
): readonly Schema[] {
  return (schema.anyOf ?? schema.oneOf ?? [schema]).map(resolved)
}
