/** A provider that people sign in with. */
export type Upstream = {
  /** `google`, `microsoft`, `gitlab`, `oidc`, or the id of a provider of the tenant. */
  readonly id: string
  readonly name: string
}
