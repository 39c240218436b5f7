/** [passkey]: sign-in with public keys (WebAuthn). */
import {
  dependentFlag,
  list,
  origin,
  seconds,
  text,
} from '../../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../../runtime/kernel/config/section.js'

/** Browsers read no more (WebAuthn Level 3 section 5.11.1). */
const LABELS_MAX = 5

export const passkeySettings = section(
  'passkey',
  {
    enabled: dependentFlag().describe(
      'Users may sign in with passkeys and use them as second factor.',
    ),
    rp_id: text('id.example.com')
      .regex(/^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)*$/)
      .optional()
      .describe(
        'The domain that passkeys belong to: the host of the issuer, or a parent domain of it. ' +
          'Changing it invalidates all existing passkeys. Default: the host of oidc.issuer_url.',
      ),
    origins: list(origin())
      .default([])
      .describe(
        'Origins at which the pages may be opened. Empty: the origin of oidc.issuer_url. Browsers read those outside of ' +
          'passkey.rp_id in /.well-known/webauthn, of five registrable labels at most.',
      ),
    ceremony_secs: seconds(300, 600).describe('How long a user has to complete a passkey prompt.'),
  },
  {
    about: 'Sign-in with a passkey.',
    rules: [
      {
        keys: ['rp_id', 'origins'],
        holds: ({ rp_id, origins }) =>
          rp_id === undefined ||
          origins.length === 0 ||
          origins.some((origin) => isWithin(new URL(origin).hostname, rp_id)),
        rule: 'be the host of one of passkey.origins, or a parent domain of it',
        fix: 'set passkey.rp_id to a domain that one of passkey.origins lies in',
      },
      {
        keys: ['origins'],
        holds: ({ origins }) => new Set(origins.map(labelOf)).size <= LABELS_MAX,
        rule: `have ${LABELS_MAX} registrable labels at most (example of https://id.example.co.uk)`,
        fix: 'browsers ignore further ones: remove origins',
      },
    ],
  },
)

/** Second levels under which countries register names. */
const SECOND_LEVEL = /^(?:ac|co|com|edu|gov|net|org)$/

/** The registrable label of an origin, without a list of public suffixes. */
function labelOf(origin: string): string {
  const labels = new URL(origin).hostname.split('.')
  const [suffix = '', second = ''] = labels.toReversed()
  const isCountry = suffix.length === 2 && SECOND_LEVEL.test(second) && labels.length > 2
  return labels.at(isCountry ? -3 : -2) ?? suffix
}

type PasskeySettings = SettingsOf<typeof passkeySettings>

/** True if browsers let pages of this host use passkeys of the domain (WebAuthn section 5.1.3). */
function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`)
}

/** The relying party that a ceremony is verified against. */
export type RelyingParty = {
  readonly id: string
  readonly origins: readonly string[]
  readonly ceremonySecs: number
}

export function relyingParty(
  { rp_id, origins, ceremony_secs: ceremonySecs }: PasskeySettings,
  issuer: string,
): RelyingParty {
  const { hostname, origin } = new URL(issuer)
  return { id: rp_id ?? hostname, origins: origins.length === 0 ? [origin] : origins, ceremonySecs }
}

/** Null where passkeys are off. */
export const relyingPartyOf = (settings: PasskeySettings, issuer: string): RelyingParty | null =>
  settings.enabled ? relyingParty(settings, issuer) : null
