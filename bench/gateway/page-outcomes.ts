/** Outcomes of actors for three hosted pages, as full as real ones. */
import type { AccountSeen } from '../../actors/identity/sign-in/account/protocol.js'
import { parseEmail } from '../../actors/domain/email.js'
import type { LoginPage } from '../../actors/identity/sign-in/protocol.js'
import type { ConsentAsked } from '../../actors/oauth/tokens/authorization/protocol.js'

const DAY_MS = 86_400_000
export const NOW = new Date('2026-11-23T12:00:00Z')
const ago = (days: number) => new Date(NOW.getTime() - days * DAY_MS)

const id = (last: number) => `01937d5e-7c1a-7b34-9a57-${String(last).padStart(12, '0')}`

const tenant = {
  id: id(1),
  name: 'Harbour Works',
  color: '#0b7285',
  logo: null,
  locale: null,
  favicon: null,
  links: [],
  texts: {},
  supportContact: 'help@harbour.example',
} as const

export const signInShown: LoginPage = {
  tag: 'page',
  flow: 'k3Jx0G1u1zq8hYl4oYcW7Q',
  tenant,
  reason: { tag: 'application', name: 'Tide Tables' },
  uiLocales: null,
  formTargets: [],
  email: '',
  again: false,
  signUp: true,
  offers: {
    passkey: true,
    code: true,
    link: true,
    reset: true,
    signUp: true,
    phone: true,
    ethereum: true,
    guest: true,
  },
  upstreams: [
    { id: 'google', name: 'Google' },
    { id: 'microsoft', name: 'Microsoft' },
  ],
  captcha: null,
}

export const consentAsked: ConsentAsked = {
  tag: 'consent',
  handle: 'k3Jx0G1u1zq8hYl4oYcW7Q',
  sessionId: id(2),
  tenant,
  clientName: 'Tide Tables',
  clientHost: 'tides.example',
  documented: null,
  email: 'ada@harbour.example',
  scopes: ['openid', 'profile', 'email', 'offline_access', 'charts:read', 'charts:write'],
  resources: [{ name: 'Charts', resource: 'https://charts.example/api' }],
  resourceScopes: [
    { name: 'charts:read', description: 'Read your sea charts', kind: 'read' },
    { name: 'charts:write', description: 'Change your sea charts', kind: 'write' },
  ],
  newScopes: ['charts:write'],
  loopbackOnly: false,
  firstSeenAt: null,
  details: [],
  uiLocales: null,
  formTargets: ['https://tides.example'],
}

const delegation = (index: number) => ({
  id: id(40 + index),
  tenantId: tenant.id,
  agentId: id(60 + index),
  agentName: `Harbour pilot ${index}`,
  subject: 'u_5ePq',
  scopes: ['openid', 'vault:list', 'vault:read'],
  audience: 'https://id.example',
  purpose: null,
  purposeHash: null,
  policyHash: 'ojT7rV0fBWcUwDR5eS0vSd9yq8Tcy4dAmM0nxGsJ0Uw',
  status: 'active' as const,
  acr: 'aal2',
  amr: ['pwd', 'otp', 'mfa'],
  authTime: ago(3),
  createdAt: ago(3),
  expiresAt: ago(-4),
  lastUsedAt: null,
  revokedAt: null,
})

export const accountSeen: AccountSeen = {
  tag: 'seen',
  connections: [],
  phone: null,
  wallets: [],
  seenAt: NOW,
  session: {
    id: id(2),
    tenantId: tenant.id,
    organizationId: id(3),
    accountId: id(4),
    tenantUserId: id(5),
    sub: 'u_5ePq',
    email: parseEmail('ada@harbour.example')!,
    emailVerified: true,
    displayName: 'Ada Moreno',
    roles: [],
    role: 'member',
    confined: false,
    level: 2,
    acr: 'aal2',
    amr: ['pwd', 'otp', 'mfa'],
    authTime: ago(0.1),
    createdAt: ago(0.1),
    expiresAt: ago(-1),
  },
  tenant,
  profile: {
    values: {
      name: 'Ada Moreno',
      given_name: 'Ada',
      family_name: 'Moreno',
      picture: '',
      locale: 'en-GB',
      zoneinfo: 'Europe/Berlin',
      phone_number: '+49 30 12345678',
    },
    phoneNumberVerified: true,
    ofTenant: [],
  },
  sessions: [2, 12, 13].map((last, index) => ({
    id: id(last),
    createdAt: ago(index * 5 + 0.1),
    lastSeenAt: ago(index * 2 + 0.01),
    acr: 'aal2',
    userAgent:
      index === 1
        ? 'Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0'
        : 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0 Safari/537.36',
    address: `192.0.2.${index + 10}`,
  })),
  factors: [{ id: id(20), kind: 'totp', enrolledAt: ago(90), lastUsedAt: ago(0.1) }],
  recoveryCodesLeft: 9,
  signals: null,
  passkeys: [
    {
      id: id(21),
      name: 'Blue security key',
      deviceBound: true,
      backedUp: false,
      createdAt: ago(60),
      lastUsedAt: ago(1),
    },
    {
      id: id(22),
      name: 'Telephone',
      deviceBound: false,
      backedUp: true,
      createdAt: ago(30),
      lastUsedAt: null,
    },
  ],
  hasPassword: true,
  consents: ['Tide Tables', 'Harbour Bank', 'Lighthouse TV'].map((clientName, index) => ({
    clientId: id(30 + index),
    clientName,
    scopes: ['openid', 'profile', 'email', 'offline_access'].slice(0, index + 2),
    createdAt: ago(index * 40 + 0.01),
    updatedAt: ago(index * 40 + 0.01),
  })),
  approvals: [],
  delegations: [1, 2].map(delegation),
  selfService: true,
  identities: [
    {
      id: id(50),
      name: 'Lighthouse',
      email: 'ada@lighthouse.example',
      linkedAt: ago(200),
      lastUsedAt: ago(12),
    },
  ],
  upstreams: [{ id: 'google', name: 'Google' }],
}
