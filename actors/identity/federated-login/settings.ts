/** [social], [generic_oauth], [enterprise_sso], [verified_domains]: federated sign-in. */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  nameServers,
  notes,
  secret,
  text,
  url,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const scopes = () =>
  list(z.string().regex(/^[!#-[\]-~]{1,64}$/))
    .default(['openid', 'email', 'profile'])
    .refine((wanted) => wanted.includes('openid'))
    .register(notes, { words: 'a list of scopes with "openid" among them' })

export const socialSettings = section(
  'social',
  {
    enabled: flag(false).describe('Sign-in through the providers below, for every tenant.'),
    google_client_id: text('1234.apps.googleusercontent.com').optional().describe('Of Google.'),
    google_client_secret: secret().optional().describe('Of Google.'),
    microsoft_tenant_id: z
      .uuid()
      .register(notes, { words: 'a UUID', example: '9188040d-6c67-4c5b-b112-36a304b66dad' })
      .optional()
      .describe('The directory whose people may sign in. There is no "common".'),
    microsoft_client_id: text('6731de76-14a6-49ae-97bc-6eba6914391e')
      .optional()
      .describe('Of Microsoft Entra ID.'),
    microsoft_client_secret: secret().optional().describe('Of Microsoft Entra ID.'),
    gitlab_client_id: text('application-id').optional().describe('Of GitLab.com.'),
    gitlab_client_secret: secret().optional().describe('Of GitLab.com.'),
    account_linking: z.object({
      enabled: flag(false).describe(
        'An address that [social] or [generic_oauth] vouches for finds the account that has it; ' +
          'otherwise people link on their account page.',
      ),
    }),
  },
  {
    about: 'Sign-in through a social provider.',
    rules: [
      {
        keys: ['microsoft_tenant_id', 'microsoft_client_id'],
        holds: (s) => s.microsoft_client_id === undefined || s.microsoft_tenant_id !== undefined,
        rule: 'be set with social.microsoft_client_id',
        fix: 'set social.microsoft_tenant_id to the directory (tenant) ID',
      },
      {
        keys: ['enabled', 'google_client_id', 'microsoft_client_id', 'gitlab_client_id'],
        holds: (s) =>
          !s.enabled ||
          [s.google_client_id, s.microsoft_client_id, s.gitlab_client_id].some(
            (id) => id !== undefined,
          ),
        rule: 'be false unless a provider is configured',
        fix: 'give the client id and secret of a provider in [social]',
      },
    ],
  },
)

export const genericOauthSettings = section(
  'generic_oauth',
  {
    enabled: flag(false).describe(
      'Sign-in through this OpenID Connect provider, for every tenant.',
    ),
    name: text('Example ID').default('Single sign-on').describe('What people see.'),
    issuer: url(['https:'], 'an https URL', 'https://id.example.org')
      .optional()
      .describe('The issuer; its discovery document says the rest.'),
    client_id: text('svc').optional().describe('The client that svc is there.'),
    client_secret: secret().optional().describe('Its secret; none for a public client.'),
    token_endpoint_auth_method: z
      .enum(['client_secret_basic', 'client_secret_post', 'none'])
      .default('client_secret_basic')
      .describe('How the client authenticates.'),
    scopes: scopes().describe('What is asked for.'),
    trusted_acr_values: list(z.string().min(1).max(255))
      .default([])
      .describe('An acr of these counts as two factors (aal2); no other one does.'),
  },
  {
    about: 'Sign-in through any OpenID Connect provider.',
    rules: [
      {
        keys: ['enabled', 'issuer', 'client_id'],
        holds: (s) => !s.enabled || (s.issuer !== undefined && s.client_id !== undefined),
        rule: 'be false unless generic_oauth.issuer and generic_oauth.client_id are set',
        fix: 'set generic_oauth.issuer and generic_oauth.client_id',
      },
      {
        keys: ['client_secret', 'token_endpoint_auth_method', 'enabled'],
        holds: (s) =>
          !s.enabled ||
          (s.token_endpoint_auth_method === 'none') === (s.client_secret === undefined),
        rule: 'be set, but not when generic_oauth.token_endpoint_auth_method is none',
        fix: 'set generic_oauth.client_secret, or token_endpoint_auth_method to "none"',
      },
    ],
  },
)

export const enterpriseSsoSettings = section(
  'enterprise_sso',
  {
    enabled: flag(false).describe('Tenants set up OpenID Connect providers of their own.'),
    max_providers_per_tenant: count(20, 1, 1_000).describe('Providers of one tenant.'),
  },
  { about: 'Sign-in through an enterprise identity provider.' },
)

export const verifiedDomainsSettings = section(
  'verified_domains',
  {
    enabled: flag(false).describe('Organizations prove by DNS which domains are theirs.'),
    max_per_tenant: count(100, 1, 10_000).describe('Domains of one tenant.'),
    dns_servers: nameServers().describe(
      'Resolvers that are asked for the proof; the system’s when empty.',
    ),
  },
  { about: 'Domains that an organization proved to own.' },
)

export type SocialSettings = SettingsOf<typeof socialSettings>
export type GenericOauthSettings = SettingsOf<typeof genericOauthSettings>
export type EnterpriseSsoSettings = SettingsOf<typeof enterpriseSsoSettings>
export type VerifiedDomainsSettings = SettingsOf<typeof verifiedDomainsSettings>
