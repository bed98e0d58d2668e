// Requests to the service. Each gets an answer in JSON, or an error that says what to do.

const PATIENCE_MS = 15_000;

export class ApiError extends Error {
  constructor(status, code, message, retryAfter) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

/** Returns the answer of a path below `api/`. Throws `ApiError`. */
export async function ask(path, parameters = {}, options = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null);
  const query = new URLSearchParams(given).toString();
  let response;
  try {
    response = await fetch(`api/${path}${query ? `?${query}` : ""}`, {
      cache: "no-store", credentials: "same-origin", redirect: "error", ...options,
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(options.signal ? [options.signal] : [])]),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The service does not answer: is it running?");
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const wait = Number(response.headers.get("Retry-After")) || null;
  const message = body.message ?? `The service answered ${response.status}.`;
  throw new ApiError(response.status, body.error ?? "", message, wait);
}

/** Returns a path below `api/` about a tenant. */
export const ofTenant = (tenant, view) => `tenants/${encodeURIComponent(tenant)}/${view}`;
