/** All sections of a process as one schema. */
import type { Section, SectionRule, SettingsOf, Shape } from './section.js'

export type AnySection = Section<string, Shape>

/** The settings tree: section name -> its settings. `when_set` sections may be undefined. */
export type SettingsTree<Sections extends readonly AnySection[]> = {
  readonly [S in Sections[number] as S['name']]: S extends Section<string, Shape, infer Presence>
    ? Presence extends 'when_set'
      ? SettingsOf<S> | undefined
      : SettingsOf<S>
    : never
}

/** A default that is copied or computed from other keys. */
export interface Fallback<Settings> {
  /** Dotted, with the section: `server.egress_url`. */
  readonly key: string
  /** The dotted keys that `value` reads. While one of them is invalid there is no fallback. */
  readonly reads: readonly string[]
  /** Where the value comes from, shown as its source. Default: the keys it reads. */
  readonly from?: string
  /** Undefined when there is no value to copy. Earlier fallbacks have been applied. */
  readonly value: (settings: Settings) => unknown
}

/** Where a fallback's value comes from, in words. */
export function fallbackSource({ from, reads }: Fallback<never>): string {
  return from ?? reads.join(', ')
}

interface AssemblyOptions<Settings> {
  readonly fallbacks?: readonly Fallback<Settings>[]
  /** Rules between sections. Their keys include the section's name. */
  readonly rules?: readonly SectionRule<Settings>[]
}

export interface Assembly<Sections extends readonly AnySection[] = readonly AnySection[]> {
  readonly sections: Sections
  readonly fallbacks: readonly Fallback<never>[]
  readonly rules: readonly SectionRule<never>[]
}

export type SettingsOfAssembly<A> =
  A extends Assembly<infer Sections> ? SettingsTree<Sections> : never

/** @throws when two sections share a name. */
export function assemble<const Sections extends readonly AnySection[]>(
  sections: Sections,
  options: AssemblyOptions<SettingsTree<Sections>> = {},
): Assembly<Sections> {
  const names = sections.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`section [${twice}] is declared twice`)
  return {
    sections,
    fallbacks: (options.fallbacks ?? []) as readonly Fallback<never>[],
    rules: (options.rules ?? []) as readonly SectionRule<never>[],
  }
}
