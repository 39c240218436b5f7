/** What is known of providers at which people connect accounts (docs/guides/connect/). */

export const CONNECTOR_TEMPLATES = [
  'google',
  'github',
  'slack',
  'microsoft',
  'notion',
  'linear',
  'salesforce',
  'custom',
] as const
export type TemplateName = (typeof CONNECTOR_TEMPLATES)[number]

export type Template = {
  readonly title: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly revocation_endpoint: string | null
  readonly issuer: string | null
  readonly scopes: readonly string[]
  readonly allowed_hosts: readonly string[]
  readonly pkce: boolean
  readonly token_endpoint_auth_method: 'client_secret_post' | 'client_secret_basic' | 'none'
  readonly authorization_parameters: Readonly<Record<string, string>>
  readonly account_label: { readonly url: string; readonly pointer: string } | null
}

/** `custom` has no entry: a request states everything. */
export const TEMPLATES: Readonly<Record<Exclude<TemplateName, 'custom'>, Template>> = {
  google: {
    title: 'Google',
    authorization_endpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
    token_endpoint: 'https://oauth2.googleapis.com/token',
    revocation_endpoint: 'https://oauth2.googleapis.com/revoke',
    issuer: 'https://accounts.google.com',
    scopes: ['openid', 'email'],
    allowed_hosts: ['www.googleapis.com', 'gmail.googleapis.com', 'openidconnect.googleapis.com'],
    pkce: true,
    token_endpoint_auth_method: 'client_secret_post',
    // Without these Google gives no refresh token to an account that was connected before.
    authorization_parameters: { access_type: 'offline', prompt: 'consent' },
    account_label: {
      url: 'https://openidconnect.googleapis.com/v1/userinfo',
      pointer: '/email',
    },
  },
  github: {
    title: 'GitHub',
    authorization_endpoint: 'https://github.com/login/oauth/authorize',
    token_endpoint: 'https://github.com/login/oauth/access_token',
    revocation_endpoint: null,
    issuer: null,
    scopes: ['read:user'],
    allowed_hosts: ['api.github.com'],
    pkce: true,
    token_endpoint_auth_method: 'client_secret_post',
    authorization_parameters: {},
    account_label: { url: 'https://api.github.com/user', pointer: '/login' },
  },
  slack: {
    title: 'Slack',
    authorization_endpoint: 'https://slack.com/oauth/v2/authorize',
    token_endpoint: 'https://slack.com/api/oauth.v2.access',
    revocation_endpoint: 'https://slack.com/api/auth.revoke',
    issuer: null,
    scopes: ['users:read'],
    allowed_hosts: ['slack.com'],
    pkce: false,
    token_endpoint_auth_method: 'client_secret_post',
    authorization_parameters: {},
    account_label: { url: 'https://slack.com/api/auth.test', pointer: '/user' },
  },
  microsoft: {
    title: 'Microsoft',
    authorization_endpoint: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    token_endpoint: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    revocation_endpoint: null,
    issuer: null,
    scopes: ['offline_access', 'User.Read'],
    allowed_hosts: ['graph.microsoft.com'],
    pkce: true,
    token_endpoint_auth_method: 'client_secret_post',
    authorization_parameters: {},
    account_label: { url: 'https://graph.microsoft.com/v1.0/me', pointer: '/userPrincipalName' },
  },
  notion: {
    title: 'Notion',
    authorization_endpoint: 'https://api.notion.com/v1/oauth/authorize',
    token_endpoint: 'https://api.notion.com/v1/oauth/token',
    revocation_endpoint: 'https://api.notion.com/v1/oauth/revoke',
    issuer: null,
    scopes: [],
    allowed_hosts: ['api.notion.com'],
    pkce: false,
    token_endpoint_auth_method: 'client_secret_basic',
    authorization_parameters: { owner: 'user' },
    account_label: null,
  },
  linear: {
    title: 'Linear',
    authorization_endpoint: 'https://linear.app/oauth/authorize',
    token_endpoint: 'https://api.linear.app/oauth/token',
    revocation_endpoint: 'https://api.linear.app/oauth/revoke',
    issuer: null,
    scopes: ['read'],
    allowed_hosts: ['api.linear.app'],
    pkce: true,
    token_endpoint_auth_method: 'client_secret_post',
    authorization_parameters: {},
    account_label: null,
  },
  salesforce: {
    title: 'Salesforce',
    authorization_endpoint: 'https://login.salesforce.com/services/oauth2/authorize',
    token_endpoint: 'https://login.salesforce.com/services/oauth2/token',
    revocation_endpoint: 'https://login.salesforce.com/services/oauth2/revoke',
    issuer: null,
    scopes: ['api', 'refresh_token'],
    // Each organization has a host: the request names it.
    allowed_hosts: [],
    pkce: true,
    token_endpoint_auth_method: 'client_secret_post',
    authorization_parameters: {},
    account_label: {
      url: 'https://login.salesforce.com/services/oauth2/userinfo',
      pointer: '/preferred_username',
    },
  },
}

/** Slack gives tokens of a person for `user_scope`, and separates scopes by commas, as Linear does. */
export const scopeParameterOf = (template: TemplateName | null): string =>
  template === 'slack' ? 'user_scope' : 'scope'
export const scopeSeparatorOf = (template: TemplateName | null): string =>
  template === 'slack' || template === 'linear' ? ',' : ' '

/** The name of a provider that people see. */
export const providerTitle = (connector: {
  readonly name: string
  readonly template: TemplateName | null
}): string =>
  connector.template === null || connector.template === 'custom'
    ? connector.name
    : TEMPLATES[connector.template].title
