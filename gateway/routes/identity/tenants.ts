/** Settings of an environment. */
import { CONTROL_PLANE_TOKEN } from '../../request/control-plane-tokens.js'
import { z } from 'zod'
import { LOCALES } from '../../../actors/domain/i18n/locales.js'
import { isRedirectHost } from '../../../actors/domain/redirect-hosts.js'
import { looksLikeLink, SHOWN_TEXT } from '../../../actors/domain/shown-names.js'
import {
  SIGN_IN_HEADING_CHARS_MAX,
  SIGN_IN_NOTE_CHARS_MAX,
} from '../../../actors/domain/tenants/branding.js'
import {
  type TenantSettingsRecord,
  tenants,
} from '../../../actors/identity/users/tenants/protocol.js'
import { organizations } from '../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../request/caller.js'
import { HttpsUrl, PAGE } from '../../../actors/domain/entities/https-url.js'
import { ChangedName } from '../../../actors/domain/entities/names.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { Tenant, tenantJson } from './organizations.js'
import { json, problem, type Route, reply, route } from '../../route.js'

const PATH = '/api/v1/tenant/settings'
const tags = ['Tenant settings'] as const
const security = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['tenant:manage'],
} as const

const LOGO_LENGTH_MAX = 96 * 1024
const LIFETIME_SECS_MAX = 30 * 86_400

const LINKS_MAX = 5

/** Plain text of a tenant on our pages. A link in it could lead people away from the sign-in. */
const ownText = (most: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(most)
    .regex(SHOWN_TEXT)
    .refine((text) => !looksLikeLink(text), 'looks like a link')
    .optional()

const PageTexts = z
  .partialRecord(
    z.enum(LOCALES),
    z.object({
      sign_in_heading: ownText(SIGN_IN_HEADING_CHARS_MAX),
      sign_in_note: ownText(SIGN_IN_NOTE_CHARS_MAX),
    }),
  )
  .meta({
    description:
      'Texts of the sign-in page by language, such as {"en": {"sign_in_heading": "Welcome back"}}: a heading in ' +
      'place of ours, and a note below it. Plain text without links. Pages in another language have our texts.',
    example: { en: { sign_in_heading: 'Welcome back', sign_in_note: 'Use your work account.' } },
  })

const Branding = z
  .object({
    name: ChangedName.optional(),
    color: z
      .string()
      .regex(/^#[0-9a-fA-F]{6}$/)
      .optional(),
    logo: z
      .string()
      .max(LOGO_LENGTH_MAX)
      .regex(/^data:image\/(?:png|jpeg|webp);base64,[A-Za-z0-9+/]+=*$/)
      .optional(),
    locale: z.enum(LOCALES).optional(),
    links: z
      .array(
        z.object({
          label: z
            .string()
            .min(1)
            .max(40)
            .regex(/^\P{Cc}+$/u),
          url: HttpsUrl(PAGE),
        }),
      )
      .max(LINKS_MAX)
      .optional(),
    texts: PageTexts.optional(),
  })
  .meta({
    id: 'Branding',
    description:
      'The look of the hosted pages of the tenant. The logo is a data: URI. An uploaded logo (uploadTenantAsset) ' +
      'takes precedence. `links` are at the end of each page, such as terms and privacy. `locale` is the language ' +
      'of pages and mails for users whose requested languages are not available.',
  })

const lifetime = () => z.int().min(60).max(LIFETIME_SECS_MAX).optional()
const SessionLifetimes = z
  .object({ idle_secs: lifetime(), absolute_secs: lifetime() })
  .refine(
    ({ idle_secs: idle, absolute_secs: absolute }) =>
      idle === undefined || absolute === undefined || idle <= absolute,
    { message: 'idle_secs must be at most absolute_secs' },
  )
  .meta({ id: 'SessionLifetimes', description: 'How long users stay signed in, in seconds.' })

const SocialSignIn = z
  .object({ enabled: z.boolean().optional(), provision: z.boolean().optional() })
  .meta({
    id: 'SocialSignIn',
    description:
      'Sign-in through the providers of the deployment: whether it is offered (default true), and ' +
      'whether it provisions new users (default false).',
  })

const SignUp = z.object({ enabled: z.boolean().optional() }).meta({
  id: 'SignUpPolicy',
  description:
    'Whether people may create accounts in the tenant at /auth/register. Absent: as the deployment ' +
    '(user_self_service.sign_up_default).',
})

const AnonymousSignIn = z.object({ enabled: z.boolean().optional() }).meta({
  id: 'AnonymousSignIn',
  description:
    'Whether people may continue as guests, where the deployment has them (default false). A guest has no email ' +
    'address and no `email` claim, until the person proves one.',
})

const host = z
  .string()
  .max(255)
  .transform((text) => text.toLowerCase())
  .refine(
    (text) => /^(?:\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?|\[[0-9a-f:.]+\])$/.test(text),
    {
      message: 'a host name, *.example.com or *',
    },
  )
const hosts = z.array(host).max(200)
const ClientIdMetadata = z
  .object({
    enabled: z.boolean().default(true),
    allow: hosts.default(['*']).meta({
      description:
        'Hosts of admitted client ids: names, `*.example.com` for every name below, or `*`.',
    }),
    deny: hosts.default([]).meta({ description: 'As allow, and wins. Never fetched.' }),
    require_auth: z.boolean().default(false).meta({
      description: 'Admits only clients that authenticate with private_key_jwt.',
    }),
    max_new_clients_per_hour: z.int().min(0).max(100_000).default(100),
  })
  .meta({
    id: 'ClientIdMetadataPolicy',
    description: 'Clients that are identified by the URL of their metadata document.',
  })

const members = {
  admit_agents: z.boolean().meta({ description: 'Agents may register by proof of work' }),
  direct_agent_registration: z
    .boolean()
    .meta({ description: 'Agents may register without proof of work: for trusted contexts' }),
  credential_issuer_enabled: z
    .boolean()
    .meta({ description: 'The tenant is published as a credential issuer' }),
  checkout_redirect_hosts: z
    .array(
      z
        .string()
        .max(259)
        .refine((host) => isRedirectHost(host.toLowerCase()), {
          message: 'a host name, with a port if need be',
        }),
    )
    .max(100)
    .meta({ description: 'Hosts that checkouts may redirect buyers to.' }),
  x402_pay_to: z
    .record(z.string().regex(/^eip155:[1-9][0-9]{0,14}$/), z.string().regex(/^0x[0-9a-fA-F]{40}$/))
    .refine((payees) => Object.keys(payees).length <= 32, { message: 'at most 32 networks' })
    .meta({
      description:
        'Payee addresses of x402 payments by CAIP-2 network, for payment links without their own address.',
      example: { 'eip155:8453': '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' },
    }),
  logout_revokes_offline: z.boolean().meta({
    description:
      'Signing out also revokes refresh tokens with the scope `offline_access` (default false).',
  }),
  id_jag: z
    .object({
      include_act: z.boolean().default(false).meta({
        description: 'Delegated tokens get identity assertions too, with the agents in `act`.',
      }),
    })
    .meta({ id: 'IdJagPolicy', description: 'Identity assertions that the tenant issues.' }),
  client_id_metadata: ClientIdMetadata,
  branding: Branding,
  session: SessionLifetimes,
  social: SocialSignIn,
  sign_up: SignUp,
  anonymous: AnonymousSignIn,
}
const TenantSettings = z.object(members).meta({ id: 'TenantSettings' })
export const ChangeTenantSettings = z.object(members).partial().meta({
  id: 'ChangeTenantSettings',
  description: 'Absent members stay unchanged. Objects are replaced as a whole.',
})

const noEnvironment = problem(403, 'forbidden', {
  reason: CONTROL_PLANE_TOKEN,
  detail: 'The control plane has no tenant settings: use a token of one of your environments.',
})
const found = reply(200, TenantSettings, ({ settings }: { settings: TenantSettingsRecord }) => ({
  admit_agents: settings.admitAgents,
  direct_agent_registration: settings.directAgentRegistration,
  credential_issuer_enabled: settings.credentialIssuerEnabled,
  checkout_redirect_hosts: [...settings.checkoutRedirectHosts],
  x402_pay_to: { ...settings.x402PayTo },
  logout_revokes_offline: settings.logoutRevokesOffline,
  id_jag: { include_act: settings.idJag.includeAct },
  client_id_metadata: {
    enabled: settings.clientIdMetadata.enabled,
    allow: [...settings.clientIdMetadata.allow],
    deny: [...settings.clientIdMetadata.deny],
    require_auth: settings.clientIdMetadata.requireAuth,
    max_new_clients_per_hour: settings.clientIdMetadata.maxNewClientsPerHour,
  },
  branding: {
    ...settings.branding,
    links: settings.branding.links?.map((link) => ({ ...link })),
    texts: settings.branding.texts,
  },
  session: {
    idle_secs: settings.session.idleSecs,
    absolute_secs: settings.session.absoluteSecs,
  },
  social: settings.social,
  sign_up: settings.signUp,
  anonymous: settings.anonymous,
}))

const ActivatedTenant = Tenant.extend({
  retired_fixture_users: z.array(z.uuid()),
  rotated_applications: z
    .array(
      z.object({
        application_id: z.uuid(),
        client_id: z.string(),
        client_secret: z.string().optional(),
      }),
    )
    .meta({
      description:
        'With their new secrets, which are shown once. A replay omits them, and rotate-secret of an application issues another',
    }),
}).meta({ id: 'ActivatedTenant' })

export const tenantRoutes: readonly Route[] = [
  route(organizations, 'activateTenant', {
    method: 'POST',
    path: '/api/v1/tenant/activate',
    summary: 'Turn a sandbox into a production environment',
    description:
      'For a user at AAL2 or higher. Fixture users are removed, the secret of the application created ' +
      'with the workspace is replaced, its tokens, unused operator invites and the sessions of agents ' +
      'in the tenant end, and the tenant admits no further agents; in one step that happens once.',
    tags,
    exposure: 'internal',
    security: {
      ...security,
      subjects: ['human'],
      direct: 'required',
      controlPlaneTokens: 'refused',
    },
    onceOnly: true,
    idempotent: true,
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
    }),
    replies: {
      activated: reply(200, ActivatedTenant, ({ tenant, retiredFixtureUsers, rotated }) => ({
        ...tenantJson(tenant),
        retired_fixture_users: [...retiredFixtureUsers],
        rotated_applications: rotated.map(({ applicationId, clientSecret }) => ({
          application_id: applicationId,
          client_id: applicationId,
          ...(clientSecret === null ? {} : { client_secret: clientSecret }),
        })),
      })),
      step_up_needed: problem(401, 'unauthorized', {
        error: 'insufficient_user_authentication',
        detail: 'This operation needs a sign-in with a second factor.',
        headers: {
          'www-authenticate':
            'Bearer error="insufficient_user_authentication", acr_values="aal3 aal2"',
        },
      }),
      fixture_caller: problem(403, 'policy-denied', {
        detail: 'Activation removes the fixture users, so another user must request it.',
      }),
      already_production: problem(409, 'conflict', {
        detail: 'The tenant is already a production environment.',
      }),
      no_environment: noEnvironment,
      ...idempotencyRefusals,
    },
  }),
  route(tenants, 'readTenantSettings', {
    method: 'GET',
    path: PATH,
    summary: 'Read the settings of the tenant',
    tags,
    exposure: 'internal',
    security,
    message: ({ principal }) => ({ tenantId: principal.tenantId }),
    replies: { found, no_environment: noEnvironment },
  }),
  route(tenants, 'changeTenantSettings', {
    method: 'PATCH',
    path: PATH,
    summary: 'Update settings of the tenant; they apply in every process immediately',
    description: 'Members unknown to this build are ignored.',
    tags,
    exposure: 'internal',
    security,
    body: json(ChangeTenantSettings),
    message: (request) => ({
      caller: callerOf(request),
      change: {
        admitAgents: request.body.admit_agents,
        directAgentRegistration: request.body.direct_agent_registration,
        credentialIssuerEnabled: request.body.credential_issuer_enabled,
        checkoutRedirectHosts: request.body.checkout_redirect_hosts?.map((host) =>
          host.toLowerCase(),
        ),
        x402PayTo: request.body.x402_pay_to,
        logoutRevokesOffline: request.body.logout_revokes_offline,
        idJag: request.body.id_jag && { includeAct: request.body.id_jag.include_act },
        clientIdMetadata: policyOf(request.body.client_id_metadata),
        branding: request.body.branding,
        social: request.body.social,
        signUp: request.body.sign_up,
        anonymous: request.body.anonymous,
        session:
          request.body.session === undefined
            ? undefined
            : {
                idleSecs: request.body.session.idle_secs,
                absoluteSecs: request.body.session.absolute_secs,
              },
      },
    }),
    replies: {
      found,
      invalid: problem(400, 'bad-request', ({ pointer, detail }) => ({
        detail,
        errors: [{ pointer, detail }],
      })),
      no_environment: noEnvironment,
    },
  }),
]

function policyOf(policy: z.output<typeof ClientIdMetadata> | undefined) {
  return policy === undefined
    ? undefined
    : {
        enabled: policy.enabled,
        allow: policy.allow,
        deny: policy.deny,
        requireAuth: policy.require_auth,
        maxNewClientsPerHour: policy.max_new_clients_per_hour,
      }
}
