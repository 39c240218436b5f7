/** Approval of calls: for the agent, for the person by API and on a page. */
import { z } from 'zod'
import {
  APPROVAL_PAGE,
  APPROVAL_PATH,
  APPROVAL_STATUSES,
  CallApproval,
} from '../../../actors/domain/vault/approvals.js'
import { type ApprovalFound, approvals } from '../../../actors/vault/approvals/protocol.js'
import { callDecidedPage, callPage, noApprovalPage } from '../../pages/vault/approval.js'
import { callerOf } from '../../request/caller.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { presenter } from '../../response/presenter.js'
import { page, pageForm, problem, reply, type Route, route, seeOther } from '../../route.js'
import { stepUpNeeded } from '../operations/step-up.js'
import { approvalReply } from './approval-shapes.js'

const APPROVALS = '/api/v1/approvals'
const TAGS = ['Vault']
const OnePath = z.object({ approval_id: z.string().max(64) })
const record = presenter(CallApproval)
const found = reply(200, CallApproval, ({ approval }: ApprovalFound) => record(approval))
const unknown = problem(404, 'not-found', { detail: 'There is no such approval.' })

const people = {
  tags: TAGS,
  exposure: 'public',
  capabilities: ['vault.approvals'],
} as const
const readers = {
  scheme: 'bearer',
  scopes: ['vault:read', 'vault:manage', 'delegations:manage'],
  direct: 'required',
} as const
/** Agents never answer. */
const deciders = {
  scheme: 'bearer',
  scopes: ['vault:manage', 'delegations:manage'],
  subjects: ['human'],
  direct: 'required',
} as const

const decisions = {
  found,
  unknown_approval: unknown,
  denied: problem(403, 'policy-denied', ({ detail }: { detail: string }) => ({ detail })),
  step_up: stepUpNeeded,
  decided_before: problem(409, 'conflict', ({ status }: { status: string }) => ({
    detail: `The approval is ${status}.`,
  })),
}

const recordRoutes: readonly Route[] = [
  route(approvals, 'getCallApproval', {
    ...people,
    method: 'GET',
    path: `${APPROVAL_PATH}/{approval_id}`,
    summary: 'Read whether a call is approved',
    description:
      'For the agent that made the call. Once it is approved, the agent repeats the same request with the id as ' +
      'x-svc-approval before expires_at, once.',
    security: { scheme: 'bearer', scopes: ['vault:read'] },
    params: OnePath,
    message: ({ principal, params }) => ({ principal, approvalId: params.approval_id }),
    replies: { state: approvalReply(200), unknown_approval: unknown },
  }),
  route(approvals, 'listCallApprovals', {
    ...people,
    method: 'GET',
    path: APPROVALS,
    summary: 'List calls that wait for a person, newest first',
    description:
      'A person sees those that they may answer. With vault:manage an administrator sees all of the tenant.',
    security: readers,
    query: PageQuery.safeExtend({ status: z.enum(APPROVAL_STATUSES).optional() }),
    message: ({ principal, query }) => ({
      principal,
      status: query.status ?? null,
      ...readPage(query),
    }),
    replies: { listed: pageReply(CallApproval, ({ approvals: rows }) => rows.map(record)) },
  }),
  route(approvals, 'readCallApproval', {
    ...people,
    method: 'GET',
    path: `${APPROVALS}/{approval_id}`,
    summary: 'Read a call that waits for a person',
    security: readers,
    params: OnePath,
    message: (request) => ({ caller: callerOf(request), approvalId: request.params.approval_id }),
    replies: { found, unknown_approval: unknown },
  }),
  route(approvals, 'approveCall', {
    ...people,
    method: 'POST',
    path: `${APPROVALS}/{approval_id}/approve`,
    summary: 'Approve a call',
    description:
      'For the owner of the credential if that is a person, else the person of the delegation, else an owner of the ' +
      'tenant, with a token of a sign-in with two factors in the last five minutes.',
    security: deciders,
    params: OnePath,
    message: (request) => ({ caller: callerOf(request), approvalId: request.params.approval_id }),
    replies: decisions,
  }),
  route(approvals, 'denyCall', {
    ...people,
    method: 'POST',
    path: `${APPROVALS}/{approval_id}/deny`,
    summary: 'Deny a call',
    security: deciders,
    params: OnePath,
    message: (request) => ({ caller: callerOf(request), approvalId: request.params.approval_id }),
    replies: decisions,
  }),
]

const pages = {
  tags: ['Hosted pages'],
  exposure: 'public',
  security: { scheme: 'browser' },
  errors: 'page',
  params: OnePath,
} as const
const elsewhere = seeOther(({ location }: { location: string }) => ({ location }))
const decision = pageForm({ session: z.string().max(64) })
const answers = { back: elsewhere, sign_in: elsewhere, no_approval: page(404, noApprovalPage) }

const pageRoutes: readonly Route[] = [
  route(approvals, 'showCallApproval', {
    ...pages,
    method: 'GET',
    path: `${APPROVAL_PAGE}/{approval_id}`,
    summary: 'Page on which a person approves or denies a call',
    description:
      'Needs a recent sign-in with a second factor. Shows the outcome of an answered one.',
    message: ({ params, browser }) => ({
      approvalId: params.approval_id,
      sessionToken: browser.sessionToken,
    }),
    replies: {
      asked: page(200, callPage),
      decided: page(200, callDecidedPage),
      sign_in: elsewhere,
      no_approval: answers.no_approval,
    },
  }),
  route(approvals, 'approveShownCall', {
    ...pages,
    method: 'POST',
    path: `${APPROVAL_PAGE}/{approval_id}/approve`,
    summary: 'Approve a call on its page',
    description: 'Form of the page.',
    body: decision,
    message: ({ params, body, browser, clientAddress: address }) => ({
      approvalId: params.approval_id,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      address,
    }),
    replies: answers,
  }),
  route(approvals, 'denyShownCall', {
    ...pages,
    method: 'POST',
    path: `${APPROVAL_PAGE}/{approval_id}/deny`,
    summary: 'Deny a call on its page',
    description: 'Form of the page.',
    body: decision,
    message: ({ params, body, browser, clientAddress: address }) => ({
      approvalId: params.approval_id,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      address,
    }),
    replies: answers,
  }),
]

export const approvalRoutes: readonly Route[] = [...recordRoutes, ...pageRoutes]
