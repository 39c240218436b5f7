/** Settings of [jwt], [oidc] and [dpop]. See docs/reference/configuration.md. */
import { z } from 'zod'
import { baseUrl, flag, seconds } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const ACCESS_MIN_SECS = 60
const ACCESS_MAX_SECS = 86_400
const REFRESH_MIN_SECS = 3_600
const REFRESH_MAX_SECS = 7_776_000

const accessSecs = (defaultSecs: number) =>
  z.int().min(ACCESS_MIN_SECS).max(ACCESS_MAX_SECS).default(defaultSecs)
const refreshSecs = (defaultSecs: number) =>
  z.int().min(REFRESH_MIN_SECS).max(REFRESH_MAX_SECS).default(defaultSecs)

export const jwtSettings = section(
  'jwt',
  {
    default_algorithm: z
      .enum(['ES256', 'EdDSA'])
      .default('ES256')
      .describe('Algorithm of new signing keys.'),
    access_token_lifetime_human_secs: accessSecs(900).describe('Access tokens of humans.'),
    access_token_lifetime_agent_secs: accessSecs(300).describe('Access tokens of agents.'),
    refresh_token_lifetime_human_secs: refreshSecs(604_800).describe('Refresh tokens of humans.'),
    refresh_token_lifetime_agent_secs: refreshSecs(86_400).describe('Refresh tokens of agents.'),
    id_token_lifetime_secs: z.int().min(60).max(3_600).default(300).describe('ID tokens.'),
    key_rotation_days: z
      .int()
      .min(1)
      .max(365)
      .default(30)
      .describe('Age in days at which a signing key is rotated.'),
  },
  {
    about: 'Token lifetimes and signing keys.',
    rules: [
      {
        keys: ['refresh_token_lifetime_human_secs', 'access_token_lifetime_human_secs'],
        holds: (jwt) =>
          jwt.refresh_token_lifetime_human_secs >= jwt.access_token_lifetime_human_secs,
        rule: 'be at least jwt.access_token_lifetime_human_secs',
        fix: 'raise the refresh lifetime or lower the access lifetime',
      },
      {
        keys: ['refresh_token_lifetime_agent_secs', 'access_token_lifetime_agent_secs'],
        holds: (jwt) =>
          jwt.refresh_token_lifetime_agent_secs >= jwt.access_token_lifetime_agent_secs,
        rule: 'be at least jwt.access_token_lifetime_agent_secs',
        fix: 'raise the refresh lifetime or lower the access lifetime',
      },
    ],
  },
)

export const oidcSettings = section(
  'oidc',
  {
    issuer_url: baseUrl().describe('The issuer: the public base URL of the service.'),
    par_ttl_secs: seconds(90, 600).describe('Lifetime of a pushed authorization request.'),
    code_ttl_secs: seconds(60, 600).describe('Lifetime of an authorization code.'),
    dynamic_registration_enabled: flag(false).describe(
      'Enables dynamic client registration (RFC 7591).',
    ),
    registration_initial_access_token_required: flag(true).describe(
      'Dynamic client registration requires an initial access token.',
    ),
    client_id_metadata_enabled: flag(true).describe(
      'Accepts the URL of a client metadata document as client_id. Tenants limit it by their settings.',
    ),
    client_id_metadata_max_bytes: z
      .int()
      .min(1_024)
      .max(16_384)
      .default(5_120)
      .describe('Longest client metadata document.'),
  },
  { about: 'OpenID Connect.' },
)

export const dpopSettings = section(
  'dpop',
  {
    enabled: flag(true).describe('Accepts DPoP proofs (RFC 9449).'),
    require_nonce: flag(false).describe('DPoP proofs must carry a nonce of the server.'),
    proof_max_age_secs: seconds(300, 3_600).describe('Oldest DPoP proof that is accepted.'),
  },
  { about: 'DPoP: tokens bound to a key of the client.' },
)

export const refreshFamilyCacheSettings = section(
  'refresh_family_cache',
  {
    enabled: flag(false).describe(
      'Refuses refresh tokens of revoked families and ended sessions from memory, without a statement, once a process has seen them.',
    ),
    max_entries: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe('Refresh tokens that a process remembers.'),
  },
  { about: 'For clients that repeat dead refresh tokens.' },
)

export type RefreshFamilyCacheSettings = SettingsOf<typeof refreshFamilyCacheSettings>
export type JwtSettings = SettingsOf<typeof jwtSettings>
export type OidcSettings = SettingsOf<typeof oidcSettings>
export type DpopSettings = SettingsOf<typeof dpopSettings>
