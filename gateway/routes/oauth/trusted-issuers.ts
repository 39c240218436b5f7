/** Issuers that a tenant trusts, and the rules for their tokens. */
import { z } from 'zod'
import {
  type IssuerRefused,
  type RuleForbidden,
  STEPS,
  trustedIssuers,
} from '../../../actors/oauth/trusted-issuers/protocol.js'
import {
  type Rule,
  RULE_MEMBERS,
  trustedIssuer,
  type TrustedIssuerMembers,
} from '../../../actors/domain/entities/trusted-issuer.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { entityRoutes, invalidMember, MemberPath, unknownRow } from '../../entity-routes.js'
import { callerOf } from '../../request/caller.js'
import { json, empty, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const ISSUERS = '/api/v1/trusted-issuers'
const RULES = `${ISSUERS}/{id}/rules`

export const federationReaders = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['federation:read', 'federation:manage'],
} as const
export const federationManagers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['federation:manage'],
  direct: 'required',
} as const

const shared = { tags: ['Trusted issuers'], exposure: 'public' } as const
const unknown = unknownRow('trusted issuer')
const forbidden = problem(403, 'insufficient-scope', ({ scopes }: RuleForbidden, { baseUrl }) => ({
  detail: `You lack scopes of the application: ${scopes.join(' ')}.`,
  headers: scopeChallenge(baseUrl, scopes),
}))

const CreateRule = z.object(RULE_MEMBERS).meta({ id: 'CreateTrustedIssuerRule' })
const RuleRecord = z
  .object({
    id: z.uuid(),
    trusted_issuer_id: z.uuid(),
    ...RULE_MEMBERS,
    max_lifetime_secs: z.int().optional(),
    position: z.int(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'TrustedIssuerRule' })

const Evaluation = z
  .object({
    accepted: z.boolean(),
    rule_id: z.uuid().optional().meta({ description: 'The rule that matches.' }),
    failed: z
      .array(z.object({ step: z.enum(STEPS), detail: z.string() }))
      .optional()
      .meta({ description: 'The first step that fails. For `rule`: what each rule misses.' }),
  })
  .meta({ id: 'TrustedIssuerEvaluation' })

const recordOf = (rule: Rule) => ({
  id: rule.id,
  trusted_issuer_id: rule.trustedIssuerId,
  name: rule.name,
  target: { client_id: rule.clientId },
  conditions: [...rule.conditions],
  scopes: [...rule.scopes],
  resources: [...rule.resources],
  ...(rule.maxLifetimeSecs === null ? {} : { max_lifetime_secs: rule.maxLifetimeSecs }),
  position: rule.position,
  created_at: rule.createdAt.toISOString(),
})

export const trustedIssuerRoutes: readonly Route[] = [
  ...entityRoutes<TrustedIssuerMembers, IssuerRefused>(trustedIssuers, {
    entity: trustedIssuer,
    path: ISSUERS,
    noun: { a: 'a', one: 'trusted issuer', many: 'trusted issuers' },
    operationIds: {
      list: 'listTrustedIssuers',
      create: 'createTrustedIssuer',
      read: 'getTrustedIssuer',
      update: 'updateTrustedIssuer',
      remove: 'deleteTrustedIssuer',
    },
    texts: {
      conflict:
        'The tenant trusts this issuer for this purpose already, or a domain is an address of this service.',
      create: {
        summary: 'Trust an issuer of tokens',
        description:
          'For workloads: its tokens are accepted at /oauth/token as the tenant’s rules say: as `client_assertion`, as ' +
          '`assertion` of the jwt-bearer grant (RFC 7523), and as `subject_token` of a token exchange (RFC 8693). Without ' +
          'a rule none is. For people: its identity assertions (ID-JAG) are accepted as `assertion` of the jwt-bearer grant.',
      },
      update: {
        description: 'Absent members stay unchanged. In force within a second everywhere.',
      },
      remove: { description: 'Its rules are deleted too. Its tokens are refused from then on.' },
    },
    capabilities: ['oauth.workload_identity', 'oauth.identity_assertion'],
    readers: federationReaders,
    managers: federationManagers,
    refusals: {
      forbidden,
      domain_not_verified: problem(
        422,
        'unprocessable-content',
        ({ host }: { readonly host: string }) => ({
          error: 'domain_not_verified',
          detail: `${host} is not a verified domain of this tenant: add and verify the domain first.`,
          errors: [
            { pointer: '#/email_domains', detail: 'must be verified domains of the tenant' },
          ],
        }),
      ),
    },
  }),
  route(trustedIssuers, 'listTrustedIssuerRules', {
    ...shared,
    method: 'GET',
    path: RULES,
    operationId: 'listTrustedIssuerRules',
    summary: 'List the rules of a trusted issuer, in the order in which they are tried',
    security: federationReaders,
    params: MemberPath,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      listed: reply(200, z.object({ data: z.array(RuleRecord) }), ({ rules }) => ({
        data: rules.map(recordOf),
      })),
      unknown,
    },
  }),
  route(trustedIssuers, 'createTrustedIssuerRule', {
    ...shared,
    method: 'POST',
    path: RULES,
    operationId: 'createTrustedIssuerRule',
    summary: 'Add a rule: which tokens of the issuer stand for which application',
    description:
      'One condition must pin the claim that the issuer never gives again: `sub`, for Kubernetes the uid of the service ' +
      'account, for GitHub Actions `repository_id`, for GitLab `project_id`.',
    security: federationManagers,
    idempotent: true,
    params: MemberPath,
    body: json(CreateRule),
    message: (request) => {
      const { target, max_lifetime_secs: maxLifetimeSecs, position, ...members } = request.body
      return {
        caller: callerOf(request),
        idempotency: request.idempotency,
        issuerId: request.params.id,
        draft: {
          ...members,
          clientId: target.client_id,
          maxLifetimeSecs,
          position: position ?? null,
        },
      }
    },
    replies: {
      created: reply(
        201,
        RuleRecord,
        ({ rule }) => recordOf(rule),
        ({ rule }) => ({
          location: `${ISSUERS}/${rule.trustedIssuerId}/rules/${rule.id}`,
        }),
      ),
      invalid: invalidMember,
      forbidden,
      full: problem(409, 'conflict', ({ most }: { readonly most: number }) => ({
        detail: `A trusted issuer can have at most ${most} rules.`,
      })),
      not_pinned: problem(
        422,
        'unprocessable-content',
        ({ claim }: { readonly claim: string }) => ({
          error: 'rule_not_pinned',
          detail: `A condition must say which ${claim} the token has: other claims can be given to another workload.`,
          errors: [{ pointer: '#/conditions', detail: `must pin ${claim}` }],
        }),
      ),
      target_unknown: problem(422, 'unprocessable-content', {
        detail: 'The target is no active application of this tenant.',
        errors: [{ pointer: '#/target', detail: 'must be an active application' }],
      }),
      scope_unknown: problem(
        422,
        'unprocessable-content',
        ({ scope }: { readonly scope: string }) => ({
          detail: `The target does not have the scope ${scope}.`,
          errors: [{ pointer: '#/scopes', detail: 'must be scopes of the target' }],
        }),
      ),
      unknown,
      ...idempotencyRefusals,
    },
  }),
  route(trustedIssuers, 'deleteTrustedIssuerRule', {
    ...shared,
    method: 'DELETE',
    path: `${RULES}/{rule_id}`,
    operationId: 'deleteTrustedIssuerRule',
    summary: 'Delete a rule',
    security: federationManagers,
    params: MemberPath.extend({ rule_id: z.string().max(64) }),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      ruleId: request.params.rule_id,
    }),
    replies: { removed: empty(204), unknown: unknownRow('rule') },
  }),
  route(trustedIssuers, 'evaluateTrustedIssuerToken', {
    ...shared,
    method: 'POST',
    path: `${ISSUERS}/{id}/evaluate`,
    operationId: 'evaluateTrustedIssuerToken',
    summary: 'Ask what would happen to a token of the issuer',
    description: 'Issues no token, and does not use up the `jti`. The token is not stored.',
    security: federationManagers,
    params: MemberPath,
    body: json(
      z.object({ token: z.string().min(1).max(32_768) }).meta({ id: 'EvaluateTrustedIssuerToken' }),
    ),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      token: request.body.token,
    }),
    replies: {
      evaluated: reply(200, Evaluation, ({ ruleId, failed }) => ({
        accepted: failed.length === 0,
        ...(ruleId === null ? {} : { rule_id: ruleId }),
        ...(failed.length === 0 ? {} : { failed: [...failed] }),
      })),
      unknown,
    },
  }),
]
