/** A section of the configuration, declared next to the code that reads it. */
import type { z } from 'zod'

export type Shape = Readonly<Record<string, z.ZodType>>

/** A rule between keys of one section, checked once the keys themselves are valid. */
export interface SectionRule<Settings> {
  /** The keys that the rule reads, dotted for nested tables. A failure names the first one. */
  readonly keys: readonly [string, ...string[]]
  readonly holds: (settings: Settings) => boolean
  /** What must hold, as a continuation of the word "must". */
  readonly rule: string
  /** What the operator should change. */
  readonly fix: string
}

interface SectionOptions<Settings> {
  /** One or two sentences for the example file and the reference page. */
  readonly about?: string
  /**
   * `always`: every key has a default. `when_set`: the section is undefined until one of its keys
   * is given, and then its required keys must be given too.
   */
  readonly presence?: 'always' | 'when_set'
  readonly rules?: readonly SectionRule<Settings>[]
}

export interface Section<
  Name extends string,
  Fields extends Shape,
  Presence extends 'always' | 'when_set' | 'list' = 'always' | 'when_set' | 'list',
> {
  readonly name: Name
  readonly shape: Fields
  readonly presence: Presence
  readonly about: string
  readonly rules: readonly SectionRule<never>[]
}

type Fields<S extends Shape> = z.output<z.ZodObject<S>>

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T

/** The type of the settings an actor receives for its section. */
export type SettingsOf<S> =
  S extends Section<string, infer F, infer Presence>
    ? Presence extends 'list'
      ? readonly DeepReadonly<Fields<F>>[]
      : DeepReadonly<Fields<F>>
    : never

/** The rules of a part of a section, which is declared elsewhere. */
export type RulesOf<F extends Shape> = readonly SectionRule<DeepReadonly<Fields<F>>>[]

/** Declares the section `[name]`. Nested tables are `z.object` values of the shape. */
export function section<
  const Name extends string,
  F extends Shape,
  const Presence extends 'always' | 'when_set' = 'always',
>(
  name: Name,
  shape: F,
  options: SectionOptions<DeepReadonly<Fields<F>>> & { readonly presence?: Presence } = {},
): Section<Name, F, NoInfer<Presence>> {
  return {
    name,
    shape,
    presence: options.presence ?? ('always' as Presence),
    about: options.about ?? '',
    rules: (options.rules ?? []) as readonly SectionRule<never>[],
  }
}

/** Declares the array of tables `[[name]]`. Every element has this shape. */
export function sectionList<const Name extends string, F extends Shape>(
  name: Name,
  shape: F,
  options: { readonly about?: string } = {},
): Section<Name, F, 'list'> {
  return { name, shape, presence: 'list', about: options.about ?? '', rules: [] }
}
