/** Plans and the billing of organizations, for operators of the deployment. */
import { z } from 'zod'
import {
  BILLED_FEATURES,
  type BillingRecord,
  billingPlans,
  type PlanRecord,
} from '../../../../actors/identity/users/plans/protocol.js'
import { callerOf } from '../../../request/caller.js'
import { presenter } from '../../../response/presenter.js'
import { uuid } from '../../../request/ids.js'
import { PageQuery, pageReply, readPage } from '../../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../../route.js'
import { DisplayName } from '../../../../actors/domain/entities/names.js'
import { idempotencyRefusals } from '../../operations/idempotency-refusals.js'
import { deployment } from '../organization-records.js'
import {
  notOperator,
  ofOrganization,
  OrganizationId,
  roleTooLow,
  unknownOrganization,
} from '../organization-shapes.js'

const PLANS = '/api/v1/billing/plans'
const PLAN = `${PLANS}/{plan_id}`
const BILLING = '/api/v1/organizations/{organization_id}/billing'
const LIMIT_MAX = 1_000_000

const facts = { tags: ['Billing'], exposure: 'internal', security: deployment } as const

const ceiling = () => z.int().min(1).max(LIMIT_MAX).nullable()
const Plan = z
  .object({
    id: z.uuid(),
    name: z.string(),
    features: z.array(z.string()),
    max_members: ceiling(),
    max_tenants: ceiling(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'BillingPlan' })
const planJson = presenter(Plan)
const PlanMembers = z
  .object({
    name: DisplayName,
    features: z.array(z.enum(BILLED_FEATURES)).max(BILLED_FEATURES.length).meta({
      description: 'What organizations of the plan may use. Other features of the list are refused',
    }),
    max_members: ceiling().default(null).meta({ description: 'null: no ceiling' }),
    max_tenants: ceiling().default(null).meta({ description: 'null: no ceiling' }),
  })
  .meta({ id: 'BillingPlanMembers' })
const Billing = z
  .object({
    organization_id: z.uuid(),
    plan_id: z.uuid().nullable(),
    plan_name: z.string().nullable(),
    suspended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'OrganizationBilling' })
const AssignBilling = z
  .object({
    plan_id: uuid()
      .nullable()
      .meta({ description: 'null: no plan, so that everything is permitted' }),
    suspended: z
      .boolean()
      .default(false)
      .meta({ description: 'For non-payment: changes are refused, reads work' }),
  })
  .meta({ id: 'AssignBilling' })

const Usage = z
  .object({
    organization_id: z.uuid(),
    month: z.string().meta({ description: 'YYYY-MM, in UTC' }),
    plan: Plan.nullable().meta({ description: 'null: no plan, so that everything is permitted' }),
    suspended_at: z.iso.datetime().nullable(),
    usage: z.array(
      z.object({
        feature: z.enum(BILLED_FEATURES),
        unit: z.string().meta({ description: 'What is counted, such as calls or sign_ins' }),
        quantity: z.int(),
      }),
    ),
  })
  .meta({ id: 'OrganizationUsage' })

const PlanParams = z.object({ plan_id: z.string().max(64) })
const unknownPlan = problem(404, 'not-found', { detail: 'The plan does not exist.' })
const nameTaken = problem(409, 'conflict', { detail: 'Another plan has this name.' })
const planFound = reply(200, Plan, ({ plan }: { readonly plan: PlanRecord }) => planJson(plan))
const billingFound = reply(
  200,
  Billing,
  ({ billing }: { readonly billing: BillingRecord }): z.input<typeof Billing> => ({
    organization_id: billing.organizationId,
    plan_id: billing.planId,
    plan_name: billing.planName,
    suspended_at: billing.suspendedAt?.toISOString() ?? null,
  }),
)
const membersOf = (body: z.output<typeof PlanMembers>) => ({
  name: body.name,
  features: [...new Set(body.features)],
  maxMembers: body.max_members,
  maxTenants: body.max_tenants,
})

export const billingRoutes: readonly Route[] = [
  route(billingPlans, 'listBillingPlans', {
    ...facts,
    method: 'GET',
    path: PLANS,
    summary: 'List the plans of the deployment, newest first',
    capabilities: ['billing'],
    query: PageQuery,
    message: ({ query }) => readPage(query),
    replies: {
      listed: pageReply(Plan, ({ rows }) => rows.map(planJson)),
    },
  }),
  route(billingPlans, 'createBillingPlan', {
    ...facts,
    method: 'POST',
    path: PLANS,
    summary: 'Create a plan',
    idempotent: true,
    body: json(PlanMembers),
    message: (request) => ({
      caller: callerOf(request),
      ...membersOf(request.body),
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        Plan,
        ({ plan }) => planJson(plan),
        ({ plan }) => ({ location: `${PLANS}/${plan.id}` }),
      ),
      name_taken: nameTaken,
      ...idempotencyRefusals,
    },
  }),
  route(billingPlans, 'readBillingPlan', {
    ...facts,
    method: 'GET',
    path: PLAN,
    summary: 'Read a plan',
    params: PlanParams,
    message: ({ params }) => ({ planId: params.plan_id }),
    replies: { found: planFound, unknown_plan: unknownPlan },
  }),
  route(billingPlans, 'replaceBillingPlan', {
    ...facts,
    method: 'PUT',
    path: PLAN,
    summary: 'Replace a plan',
    description: 'Absent ceilings are removed. Its organizations follow within a second.',
    params: PlanParams,
    body: json(PlanMembers),
    message: (request) => ({
      caller: callerOf(request),
      planId: request.params.plan_id,
      ...membersOf(request.body),
    }),
    replies: { found: planFound, unknown_plan: unknownPlan, name_taken: nameTaken },
  }),
  route(billingPlans, 'deleteBillingPlan', {
    ...facts,
    method: 'DELETE',
    path: PLAN,
    summary: 'Delete a plan that no organization has',
    params: PlanParams,
    message: (request) => ({ caller: callerOf(request), planId: request.params.plan_id }),
    replies: {
      deleted: empty(204),
      unknown_plan: unknownPlan,
      in_use: problem(409, 'conflict', { detail: 'Organizations have this plan.' }),
    },
  }),
  route(billingPlans, 'readOrganizationBilling', {
    ...facts,
    method: 'GET',
    path: BILLING,
    summary: 'Read the plan of an organization',
    params: OrganizationId,
    message: ({ params }) => ({ organizationId: params.organization_id }),
    replies: { billing: billingFound, unknown_organization: unknownOrganization },
  }),
  route(billingPlans, 'assignOrganizationBilling', {
    ...facts,
    method: 'PUT',
    path: BILLING,
    summary: 'Assign a plan to an organization, or suspend it for non-payment',
    description:
      'A feature that the plan does not include is 403 billing_feature_disabled at its operations with a token of a ' +
      'tenant. While the organization is suspended, changes with such a token are 403 billing_suspended, and reads ' +
      'work. Sign-ins and tokens work on. In force within a second.',
    params: OrganizationId,
    body: json(AssignBilling),
    message: (request) => ({
      ...ofOrganization(request),
      planId: request.body.plan_id,
      suspended: request.body.suspended,
    }),
    replies: {
      billing: billingFound,
      unknown_organization: unknownOrganization,
      unknown_plan: unknownPlan,
    },
  }),
  route(billingPlans, 'readOrganizationUsage', {
    tags: ['Billing'],
    exposure: 'internal',
    // Owners see what they use. All other operations are for operators of the deployment.
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      scopes: ['org:read', 'deployment:manage'],
      subjects: ['agent', 'human'],
      organizationBound: 'accepted',
    },
    method: 'GET',
    path: `${BILLING}/usage`,
    summary: 'Read the plan of an organization, and what it used in a month',
    description:
      'For owners and admins, and for operators of the deployment (deployment:manage). Counted from the audit logs of ' +
      'the tenants that the organization has now. Features that are not listed have no permanent record of their use.',
    params: OrganizationId,
    query: z.object({
      month: z
        .string()
        .regex(/^20[0-9]{2}-(?:0[1-9]|1[0-2])$/)
        .optional()
        .meta({ description: 'YYYY-MM, in UTC. Default: the present month', example: '2026-11' }),
    }),
    message: (request) => ({
      ...ofOrganization(request),
      month: request.query.month ?? null,
    }),
    replies: {
      usage: reply(200, Usage, ({ billing, plan, month, usage }) => ({
        organization_id: billing.organizationId,
        month,
        plan: plan === null ? null : planJson(plan),
        suspended_at: billing.suspendedAt?.toISOString() ?? null,
        usage: usage.map((each) => ({ ...each })),
      })),
      not_operator: notOperator,
      unknown_organization: unknownOrganization,
      role_too_low: roleTooLow('owners and admins'),
    },
  }),
]
