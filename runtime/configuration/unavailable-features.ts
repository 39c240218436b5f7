/**
 * Features that have settings but are not part of this build. Turning one on stops the start, so it
 * is never silently ignored. When a feature is built, its row here is removed.
 */
import { flag } from '../kernel/config/kinds.js'
import type { Sources } from '../kernel/config/outcome.js'
import { type Section, type SectionRule, section } from '../kernel/config/section.js'

type EnabledOnly<Name extends string> = Section<
  Name,
  { enabled: ReturnType<typeof flag> },
  'always'
>

function named<const Name extends string>(name: Name, about: string): EnabledOnly<Name> {
  const enabled = flag(false).describe('Not available in this build.')
  return section(name, { enabled }, { about })
}

/** Sections of which this build knows only the name and the switch. */
export const unavailableSections = [
  named('access_control', 'Access control policies.'),
  named('admin', 'Administration of the deployment.'),
  named('api_keys', 'API keys of tenants.'),
  named('billing', 'Plans and billing.'),
  named('organizations', 'Policies of organizations.'),
  named('wallet', 'Wallets and budgets.'),
] as const

/** Switches of absent features, in sections that are declared elsewhere. */
const unavailableSwitches = ['tenant_assets.enabled'] as const

const switches = [
  ...unavailableSections.map(({ name }) => `${name}.enabled`),
  ...unavailableSwitches,
]

export const unavailableRules: readonly SectionRule<unknown>[] = switches.map((key) => ({
  keys: [key],
  holds: (settings) => !isOn(settings, key),
  rule: 'be false: the feature is not available in this build',
  fix: `remove ${key} or set it to false`,
}))

function isOn(settings: unknown, key: string): boolean {
  const value = key
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], settings)
  return value === true
}

/**
 * Keys that this build accepts and does not read. Setting one is not an error, because another
 * build may read it. The start lists them.
 */
const WITHOUT_EFFECT: readonly string[] = unavailableSwitches.map(
  (key) => `${key.slice(0, key.indexOf('.'))}.`,
)

/**
 * Whether setting the dotted key changes anything. A key that is refused when it is on has an
 * effect.
 */
export function hasEffect(key: string): boolean {
  if (switches.includes(key)) return true
  return !WITHOUT_EFFECT.some((name) => (name.endsWith('.') ? key.startsWith(name) : key === name))
}

/** Keys without effect that are set in the file or the environment. */
export function settingsWithoutEffect(sources: Sources): readonly string[] {
  return [...sources]
    .filter(([key, { kind }]) => (kind === 'file' || kind === 'environment') && !hasEffect(key))
    .map(([key]) => key)
}
