/** Organizations and environments, as their operators create and see them. */
import { boundHandlers, defineActor } from '../../../../runtime/kernel/actor.js'
import { tokens } from '../../../oauth/tokens/protocol.js'
import { tenants } from '../tenants/protocol.js'
import { activateTenant } from './activation.js'
import { createOrganization, createTenant } from './creation.js'
import {
  findAccounts,
  listDeploymentOrganizations,
  listDeploymentTenants,
  readAccount,
} from './deployment.js'
import {
  addOrganizationMember,
  listOrganizationEvents,
  listOrganizationMembers,
  removeOrganizationMember,
  updateOrganizationMember,
} from './members.js'
import { type OrganizationsNeeds, type OrganizationsTools, organizationsTools } from './needs.js'
import { readOrganizationPolicy, updateOrganizationPolicy } from './policies.js'
import { type OrganizationsProtocol, organizations } from './protocol.js'
import {
  listOrganizations,
  listTenants,
  readOrganization,
  readTenant,
  updateOrganization,
  updateTenant,
} from './records.js'
import {
  reactivateAccount,
  reactivateOrganization,
  reactivateTenant,
  suspendAccount,
  suspendOrganization,
  suspendTenant,
} from './suspension.js'
import { issueOrganizationToken, switchTenant } from './tokens.js'
import {
  acceptTenantTransfer,
  closeTenantTransfer,
  listTenantTransfers,
  startTenantTransfer,
} from './transfers.js'

export const organizationsActor = defineActor<OrganizationsProtocol, OrganizationsNeeds>({
  address: organizations,
  asks: { tenants, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  lane: {
    updateOrganization: ({ organizationId }) => organizationId,
    updateTenant: ({ tenantId }) => tenantId,
    suspendOrganization: ({ id }) => id,
    reactivateOrganization: ({ id }) => id,
    suspendTenant: ({ id }) => id,
    reactivateTenant: ({ id }) => id,
    suspendAccount: ({ id }) => id,
    reactivateAccount: ({ id }) => id,
    addOrganizationMember: ({ organizationId }) => organizationId,
    updateOrganizationMember: ({ organizationId }) => organizationId,
    removeOrganizationMember: ({ organizationId }) => organizationId,
    updateOrganizationPolicy: ({ organizationId }) => organizationId,
    startTenantTransfer: ({ tenantId }) => tenantId,
    acceptTenantTransfer: ({ organizationId }) => organizationId,
    closeTenantTransfer: ({ organizationId }) => organizationId,
    activateTenant: ({ caller }) => caller.principal.tenantId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<OrganizationsProtocol, OrganizationsTools>(
      {
        listOrganizations,
        createOrganization,
        issueOrganizationToken,
        readOrganization,
        updateOrganization,
        suspendOrganization,
        reactivateOrganization,
        listTenants,
        createTenant,
        activateTenant,
        readTenant,
        updateTenant,
        switchTenant,
        suspendTenant,
        reactivateTenant,
        listDeploymentOrganizations,
        listDeploymentTenants,
        findAccounts,
        readAccount,
        suspendAccount,
        reactivateAccount,
        listOrganizationMembers,
        listOrganizationEvents,
        addOrganizationMember,
        updateOrganizationMember,
        removeOrganizationMember,
        readOrganizationPolicy,
        updateOrganizationPolicy,
        startTenantTransfer,
        listTenantTransfers,
        acceptTenantTransfer,
        closeTenantTransfer,
      },
      organizationsTools(needs),
    ),
})
