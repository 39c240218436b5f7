/** [social], [generic_oauth], [oauth_proxy]: federated sign-in. */
import { z } from 'zod'
import {
  baseUrl,
  flag,
  list,
  notes,
  origin,
  secret,
  text,
  url,
} from '../../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../../runtime/kernel/config/section.js'

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
      .describe('The directory of the users who may sign in. "common" is not supported.'),
    microsoft_client_id: text('6731de76-14a6-49ae-97bc-6eba6914391e')
      .optional()
      .describe('From Microsoft Entra ID.'),
    microsoft_client_secret: secret().optional().describe('From Microsoft Entra ID.'),
    gitlab_client_id: text('application-id').optional().describe('Of GitLab.com.'),
    gitlab_client_secret: secret().optional().describe('Of GitLab.com.'),
    account_linking: z.object({
      enabled: flag(false).describe(
        'An address that [social] or [generic_oauth] vouches for is linked to the account that has it; ' +
          'otherwise users link on their account page.',
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
    name: text('Example ID').default('Single sign-on').describe('Name on the sign-in page.'),
    issuer: url(['https:'], 'an https URL', 'https://id.example.org')
      .optional()
      .describe('The issuer. Everything else comes from its discovery document.'),
    client_id: text('svc').optional().describe('The client id of svc at the provider.'),
    client_secret: secret().optional().describe('The client secret; none for a public client.'),
    token_endpoint_auth_method: z
      .enum(['client_secret_basic', 'client_secret_post', 'none'])
      .default('client_secret_basic')
      .describe('How the client authenticates.'),
    scopes: scopes().describe('Scopes to request.'),
    trusted_acr_values: list(z.string().min(1).max(255))
      .default([])
      .describe('acr values that count as two factors (aal2). No other value does.'),
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

export const oauthProxySettings = section(
  'oauth_proxy',
  {
    enabled: flag(false).describe(
      'Relay callbacks of sign-in providers to preview deployments, whose addresses no provider knows. Not in production.',
    ),
    relay_url: baseUrl()
      .optional()
      .describe(
        'In a preview deployment: the issuer of the relay, whose redirect URIs are registered at the providers of [social] and [generic_oauth].',
      ),
    target_origins: list(origin())
      .default([])
      .describe('In the relay: the origins of the preview deployments, exactly.'),
    secret: secret(16)
      .optional()
      .describe('Signs the states of preview deployments. The same in all of them and the relay.'),
  },
  {
    about: 'A relay of OAuth callbacks.',
    rules: [
      {
        keys: ['secret', 'enabled'],
        holds: ({ enabled, secret }) => !enabled || secret !== undefined,
        rule: 'be set when oauth_proxy.enabled is true',
        fix: 'set SVC_OAUTH_PROXY__SECRET',
      },
      {
        keys: ['relay_url', 'target_origins', 'enabled'],
        holds: ({ enabled, relay_url, target_origins }) =>
          !enabled || relay_url !== undefined || target_origins.length > 0,
        rule: 'be set when oauth_proxy.enabled is true, or oauth_proxy.target_origins',
        fix: 'set oauth_proxy.relay_url in a preview deployment, oauth_proxy.target_origins in the relay',
      },
    ],
  },
)

export type OauthProxySettings = SettingsOf<typeof oauthProxySettings>
export type SocialSettings = SettingsOf<typeof socialSettings>
export type GenericOauthSettings = SettingsOf<typeof genericOauthSettings>
