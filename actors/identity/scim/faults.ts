/** Refusals of SCIM requests (RFC 7644 section 3.12). */
import type { ScimRefusal, ScimType } from './protocol.js'

/** Ends the work on a request. Its transaction is rolled back, and the caller gets the refusal. */
export class ScimFault extends Error {
  readonly refusal: ScimRefusal

  constructor(status: ScimRefusal['status'], scimType: ScimType | null, detail: string) {
    super(detail)
    this.name = 'ScimFault'
    this.refusal = { tag: 'refused', status, scimType, detail }
  }
}

/** A fault of status 400. */
export function invalid(scimType: ScimType, detail: string): ScimFault {
  return new ScimFault(400, scimType, detail)
}

/** Runs `work` and returns the refusal of a fault. @throws any other error. */
export async function refusing<T>(work: () => Promise<T>): Promise<T | ScimRefusal> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ScimFault) return error.refusal
    throw error
  }
}
