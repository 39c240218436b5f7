/** An upstream identity provider. */
export type Upstream = {
  /** `google`, `microsoft`, `gitlab`, `oidc`, or the id of a tenant's provider. */
  readonly id: string
  readonly name: string
}
