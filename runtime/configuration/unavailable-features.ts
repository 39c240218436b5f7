/**
 * Features that have settings but are not part of this build. Turning one on stops the start, so it
 * is never silently ignored. When a feature is built, its row here is removed.
 */
import { flag } from '../kernel/config/kinds.js'
import { type Section, type SectionRule, section } from '../kernel/config/section.js'

type EnabledOnly<Name extends string> = Section<
  Name,
  { enabled: ReturnType<typeof flag> },
  'always'
>

/** A section of which this build knows only the name, the switch, and why it is refused. */
function refused<const Name extends string>(
  name: Name,
  about: string,
  reason: string,
): EnabledOnly<Name> {
  const enabled = flag(false).describe(`Refused: ${reason}.`)
  return section(name, { enabled }, { about: `${about} Not available in this build: ${reason}.` })
}

/**
 * The refused sections with the reason of each. The start names the reason, and so does the reference page of the
 * configuration.
 */
export const unavailableSections = [
  refused('wallet', 'Wallets and budgets.', 'no wallet can sign'),
] as const

const switches = unavailableSections.map(({ name }) => `${name}.enabled`)

export const unavailableRules: readonly SectionRule<unknown>[] = switches.map((key) => ({
  keys: [key],
  holds: (settings) => !isOn(settings, key),
  rule: `be false: the feature is not available in this build${because(key)}`,
  fix: `remove ${key} or set it to false`,
}))

function because(key: string): string {
  const refusedSection = unavailableSections.find(({ name }) => key === `${name}.enabled`)
  const reason = refusedSection?.about.split('Not available in this build: ')[1]?.slice(0, -1)
  return reason === undefined ? '' : `, because ${reason}`
}

function isOn(settings: unknown, key: string): boolean {
  const value = key
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], settings)
  return value === true
}
