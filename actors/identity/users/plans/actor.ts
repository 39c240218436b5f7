/** Plans, their assignment to organizations, and suspension for non-payment. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { organizations } from '../organizations/protocol.js'
import { tenants } from '../tenants/protocol.js'
import type { BillingNeeds } from './needs.js'
import {
  assignOrganizationBilling,
  readOrganizationBilling,
  readOrganizationUsage,
} from './organization.js'
import {
  createBillingPlan,
  deleteBillingPlan,
  listBillingPlans,
  readBillingPlan,
  replaceBillingPlan,
} from './plans.js'
import { billingPlans, type BillingProtocol } from './protocol.js'

export const billingActor = defineActor<BillingProtocol, BillingNeeds>({
  address: billingPlans,
  asks: { tenants, organizations },
  // A month of a large organization is a long statement: one at a time for each.
  lane: { readOrganizationUsage: ({ organizationId }) => organizationId },
  mailbox: { capacity: 256, inflightMax: 16 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  handlers: {
    listBillingPlans,
    createBillingPlan,
    readBillingPlan,
    replaceBillingPlan,
    deleteBillingPlan,
    readOrganizationBilling,
    assignOrganizationBilling,
    readOrganizationUsage,
  },
})
