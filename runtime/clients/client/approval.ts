/** Calls that wait for a person: the answer of the service, and the wait for the approval (docs/guides/vault/approvals.md). */
import { setTimeout as sleep } from 'node:timers/promises'

/** The field of an answer of the service that names an approval, and of the repeated call. No upstream can send it. */
export const APPROVAL_FIELD = 'x-svc-approval'

/** A call that waits for a person. */
export type CallApproval = {
  readonly id: string
  /** The page for the person. */
  readonly url: string
  readonly status: string
  readonly expiresAt: Date
}

/** The call was not approved, and not sent. */
export class NotApproved extends Error {
  override readonly name = 'NotApproved'
  readonly approval: CallApproval

  constructor(approval: CallApproval) {
    const { id, status, url } = approval
    const what = status === 'pending' ? `waits for a person: ${url}` : `is ${status}`
    super(`the approval ${id} of the call ${what}`)
    this.approval = approval
  }
}

type Asked = CallApproval & { readonly pollAfterMs: number }

const POLL_AFTER_SECS = 5

/** Reads the answer of the service. */
export function readApproval(body: unknown): Asked {
  const members = body as Readonly<Record<string, unknown>>
  return {
    id: String(members['approval_id']),
    url: String(members['approval_url']),
    status: String(members['status']),
    expiresAt: new Date(String(members['expires_at'])),
    pollAfterMs: Number(members['poll_after_secs'] ?? POLL_AFTER_SECS) * 1000,
  }
}

/**
 * Waits until a person has approved.
 * @param read the state of the approval, from `GET /v1/approvals/{approval_id}`.
 * @param withinMs the longest wait. Undefined: until the approval expires.
 * @throws {NotApproved}
 */
export async function untilApproved(
  asked: Asked,
  read: (path: string) => Promise<unknown>,
  withinMs: number | undefined,
  signal?: AbortSignal,
): Promise<void> {
  const endMs = performance.now() + (withinMs ?? Number.POSITIVE_INFINITY)
  for (let now = asked; now.status !== 'approved'; ) {
    const leftMs = endMs - performance.now()
    if (now.status !== 'pending' || leftMs <= 0) throw new NotApproved(now)
    await sleep(Math.min(now.pollAfterMs, leftMs), undefined, signal && { signal })
    now = readApproval(await read(`/v1/approvals/${asked.id}`))
  }
}
