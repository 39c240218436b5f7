/** Types of records from the schemas of the answers that describe them. */
import type { z } from 'zod'
import type { Camel } from './entity.js'

/** What a member describes: times are dates, and an absent optional member is null. */
type Described<Member> = Member extends z.ZodISODateTime
  ? Date
  : Member extends z.ZodNullable<infer Inner> | z.ZodOptional<infer Inner>
    ? Described<Inner> | null
    : Member extends z.ZodArray<infer Item>
      ? readonly Described<Item>[]
      : Member extends z.ZodObject<infer Shape>
        ? RecordOf<Shape>
        : z.output<Member>

/** The record that a schema describes, in the names of TypeScript. */
export type RecordOf<Shape> = { readonly [K in keyof Shape as Camel<K>]: Described<Shape[K]> }
