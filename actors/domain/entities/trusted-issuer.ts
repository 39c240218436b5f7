/**
 * An issuer whose tokens a tenant accepts: for its workloads (docs/guides/oauth/workload-identity.md), or for its people
 * (docs/guides/oauth/identity-assertions.md).
 */
import { z } from 'zod'
import { type Draft, entity, type Row } from './entity.js'
import { ChosenName } from './names.js'

/** Signature algorithms of tokens of other issuers. */
export const ISSUER_ALGORITHMS = ['ES256', 'RS256', 'PS256', 'EdDSA'] as const
const LIST_MAX = 20
export const PURPOSES = ['workload', 'identity_assertion'] as const
export type Purpose = (typeof PURPOSES)[number]

const url = z.string().min(1).max(2_048)

export const trustedIssuer = entity({
  name: 'trusted_issuer',
  table: 'trusted_issuers',
  schema: 'TrustedIssuer',
  omitted: ['jwks_uri', 'jwks', 'spiffe', 'subject_mapping'],
  members: {
    name: ChosenName,
    issuer: z
      .string()
      .min(1)
      .max(512)
      .meta({
        description:
          'The claim `iss` of its tokens: an https URL. For `spiffe` it is spiffe:// and the trust domain. A tenant has ' +
          'an issuer once for each purpose.',
        example: 'https://token.actions.githubusercontent.com',
      }),
    purposes: z
      .array(z.enum(PURPOSES))
      .length(1)
      .meta({
        description:
          'For whom its tokens speak: `workload` for applications, by rules, `identity_assertion` for people (ID-JAG). ' +
          'One purpose, which cannot change.',
      }),
    kind: z
      .enum(['oidc', 'kubernetes', 'github_actions', 'gitlab', 'spiffe', 'static_jwks'])
      .meta({
        description:
          'The source of the tokens: it decides which claim every rule must pin, and where the keys are.',
      })
      .default('oidc'),
    status: z
      .enum(['active', 'disabled'])
      .meta({ description: 'Tokens of a disabled issuer are refused.' })
      .default('active'),
    jwks_uri: url
      .nullable()
      .meta({
        description:
          'https address of the key set. Absent: the metadata of the issuer names it (OpenID Connect Discovery).',
      })
      .default(null),
    jwks: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description:
          'The key set, of public keys: for `static_jwks`, and for a cluster that this service cannot reach.',
      })
      .default(null),
    spiffe: z
      .object({
        trust_domain: z.string().min(1).max(255),
        bundle_endpoint_url: url,
      })
      .nullable()
      .meta({ description: 'For `spiffe`: the trust domain, and the https address of its bundle.' })
      .default(null),
    audiences: z
      .array(z.string().min(1).max(512))
      .max(LIST_MAX)
      .meta({
        description:
          'Accepted values of `aud`. Empty: the issuer of this service, with and without a slash at its end.',
      })
      .default([]),
    allowed_algs: z
      .array(z.enum(ISSUER_ALGORITHMS))
      .min(1)
      .meta({ description: 'Accepted signature algorithms.' })
      .default([...ISSUER_ALGORITHMS]),
    max_token_age_secs: z
      .int()
      .min(60)
      .max(86_400)
      .meta({ description: 'The longest time since `iat`.' })
      .default(3_600),
    clock_skew_secs: z
      .int()
      .min(0)
      .max(300)
      .meta({ description: 'The difference that the clock of the issuer may have.' })
      .default(30),
    require_jti: z
      .boolean()
      .meta({
        description:
          'Each token has a `jti`, and is accepted once. Not for `spiffe`. An identity assertion always has one: `false` ' +
          'lets its client send it again with the same key.',
      })
      .default(false),
    subject_mapping: z
      .enum(['link', 'email', 'jit'])
      .nullable()
      .meta({
        description:
          'For `identity_assertion`, required: how a person is found for whom the issuer speaks the first time. `link`: ' +
          'among those who signed in through an identity provider of the tenant with this issuer. `email`: also by a ' +
          'verified address in `email_domains`. `jit`: also makes a user for such an address.',
      })
      .default(null),
    email_domains: z
      .array(z.string().min(1).max(253))
      .max(LIST_MAX)
      .meta({
        description:
          'Domains of addresses that the issuer may state. The tenant has verified each of them, or it is a reserved ' +
          'name in a sandbox.',
      })
      .default([]),
    trust_aud_sub: z
      .boolean()
      .meta({ description: 'The claim `aud_sub` of its assertions is the `sub` of a user here.' })
      .default(false),
  },
})

export type TrustedIssuerMembers = (typeof trustedIssuer)['members']
export type TrustedIssuer = Row<TrustedIssuerMembers>
export type TrustedIssuerDraft = Draft<TrustedIssuerMembers>

const value = z.union([z.string().max(512), z.number(), z.boolean()])
export const Condition = z
  .object({
    claim: z.string().min(1).max(255).meta({
      description:
        'Path of the claim with dots, such as `kubernetes.io.serviceaccount.uid` with each dot of a name written `\\.`.',
      example: 'repository_id',
    }),
    op: z.enum(['eq', 'in', 'glob']).meta({
      description:
        'glob: `*` is one segment between slashes, and `/*` at the end any number of them.',
    }),
    value: z.union([value, z.array(value).min(1).max(50)]).meta({
      description: 'A list for `in`, a text for `glob`. Numbers and texts are compared as texts.',
    }),
  })
  .meta({ id: 'TrustedIssuerCondition' })

/** The members of a rule that a request states. */
export const RULE_MEMBERS = {
  name: ChosenName,
  target: z
    .object({ client_id: z.uuid() })
    .strict()
    .meta({ description: 'The application that gets the token.' }),
  conditions: z.array(Condition).min(1).max(20).meta({
    description:
      'All of them must hold. One must pin what the issuer never gives to another workload.',
  }),
  scopes: z
    .array(z.string().min(1).max(255))
    .max(100)
    .meta({ description: 'Scopes of the target that its tokens may have.' }),
  resources: z
    .array(z.string().min(1).max(512))
    .max(20)
    .meta({ description: 'API resources for which tokens may be requested.' })
    .default([]),
  max_lifetime_secs: z
    .int()
    .min(60)
    .max(86_400)
    .nullable()
    .meta({ description: 'The longest lifetime of a token.' })
    .default(null),
  position: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .meta({ description: 'The rule with the lowest position is tried first. Absent: the last.' }),
}

export type RuleCondition = z.output<typeof Condition>
export type RuleDraft = {
  readonly name: string
  readonly clientId: string
  readonly conditions: readonly RuleCondition[]
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly maxLifetimeSecs: number | null
}
export type Rule = RuleDraft & {
  readonly id: string
  readonly tenantId: string
  readonly trustedIssuerId: string
  readonly position: number
  readonly createdAt: Date
}
