/** Settings of [credentials]. See docs/reference/configuration.md. */
import { flag, seconds, slug } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const OFFER_MAX_SECS = 86_400
const NONCE_MAX_SECS = 3_600
const LIFETIME_DEFAULT_SECS = 2_592_000
const LIFETIME_MAX_SECS = 31_536_000

export const credentialsSettings = section(
  'credentials',
  {
    enabled: flag(true).describe(
      'Issues verifiable credentials (OpenID4VCI). Each tenant also has its own switch, credential_issuer_enabled.',
    ),
    root_tenant_slug: slug()
      .optional()
      .describe(
        'The tenant whose credentials the issuer at the base URL offers. The tenant may be created later.',
      ),
    offer_ttl_secs: seconds(300, OFFER_MAX_SECS).describe(
      'Lifetime of a credential offer and its code.',
    ),
    nonce_ttl_secs: seconds(300, NONCE_MAX_SECS).describe('Lifetime of a c_nonce.'),
    lifetime_secs: seconds(LIFETIME_DEFAULT_SECS, LIFETIME_MAX_SECS).describe(
      'Lifetime of a credential. One about a delegation ends with it.',
    ),
  },
  { about: 'Verifiable credentials.' },
)

export type CredentialsSettings = SettingsOf<typeof credentialsSettings>
