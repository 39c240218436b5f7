/** The features that settings turn on, and how. */
import type { MessageKey } from '../../pages/texts/texts.js'
import type { ConsoleResource } from './declaration.js'

type Texts = keyof {
  [Key in MessageKey as Key extends `feature.${infer Name}.about` ? Name : never]: true
}

type Feature = {
  /** As in GET /api/v1/capabilities. */
  readonly name: string
  readonly title: MessageKey
  readonly about: MessageKey
  /** The lines of the settings file. */
  readonly toml: string
  /** Its page of the documentation. */
  readonly docs: string
}

const enabled = (section: string, ...more: readonly string[]) =>
  [`[${section}]`, 'enabled = true', ...more].join('\n')

/** A feature with texts of its name. */
const feature = (name: Texts, toml: string, docs: string): Feature => ({
  name,
  title: `feature.${name}`,
  about: `feature.${name}.about`,
  toml,
  docs,
})

/** A feature with the texts of the page that it adds to the console. */
const pages = (name: string, of: ConsoleResource['name'], toml: string, docs: string): Feature => ({
  name,
  title: `console.of.${of}`,
  about: `console.about.${of}`,
  toml,
  docs,
})

/** In the order of the page. */
export const FEATURES: readonly Feature[] = [
  feature('identity.sign_up', enabled('user_self_service'), 'guides/identity/sign-in-and-sign-up'),
  feature(
    'sso.social',
    enabled('social', 'google_client_id = "…"', 'google_client_secret = "…"'),
    'guides/identity/single-sign-on',
  ),
  feature('sso.enterprise', enabled('enterprise_sso'), 'guides/identity/single-sign-on'),
  feature('sso.verified_domains', enabled('verified_domains'), 'guides/identity/single-sign-on'),
  pages('scim', 'scim-tokens', enabled('scim'), 'guides/identity/scim'),
  feature('sign_in.anonymous', enabled('anonymous'), 'guides/identity/guests'),
  feature('sign_in.siwe', enabled('siwe'), 'guides/identity/sign-in-with-ethereum'),
  feature('sign_in.adaptive_mfa', enabled('adaptive_mfa'), 'guides/identity/adaptive-mfa'),
  feature(
    'phone',
    `${enabled('phone', 'provider = "http"', 'http_url = "https://…"')}\n\n${enabled('sms')}`,
    'guides/identity/phone',
  ),
  pages(
    'access_control',
    'access-policies',
    enabled('access_control'),
    'guides/oauth/access-policies',
  ),
  pages('api_keys', 'api-keys', enabled('api_keys'), 'guides/oauth/api-keys'),
  feature('oauth.dpop', enabled('dpop'), 'guides/oauth/dpop'),
  feature(
    'oauth.dynamic_client_registration',
    '[oidc]\ndynamic_registration_enabled = true',
    'guides/oauth/client-registration',
  ),
  feature(
    'oauth.client_id_metadata',
    '[oidc]\nclient_id_metadata_enabled = true',
    'guides/oauth/client-id-metadata-documents',
  ),
  feature('credential_issuer', enabled('credentials'), 'guides/oauth/verifiable-credentials'),
  pages('wallet', 'wallets', enabled('wallet'), 'guides/commerce/wallets'),
  pages('commerce.checkout', 'payment-links', enabled('commerce'), 'guides/commerce/payments'),
  pages(
    'tenant_assets',
    'assets',
    enabled('tenant_assets', 'folder = "…"'),
    'guides/identity/hosted-pages',
  ),
  feature('organizations', enabled('organizations'), 'guides/identity/organizations-tenants-users'),
  pages('billing', 'billing-plans', enabled('billing'), 'guides/operations/plans-and-billing'),
  feature(
    'telemetry',
    enabled('telemetry', 'otlp_endpoint = "https://…"'),
    'guides/operations/telemetry',
  ),
]
