package pep

import (
	"context"

	"pepvault/vault"
)

// Which rule carries out an operation. op is that of req.

func (op Items) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.items(ctx, req, op, done)
}

func (op Sync) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.sync(ctx, req, op, done)
}

func (op Download) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.download(ctx, req, op, done)
}

func (op Publish) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.publish(ctx, req, op, done)
}

func (op Retract) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.retract(ctx, req, op, done)
}

func (op DescribeVault) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.describeVault(ctx, req, op, done)
}

func (op ListVaults) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.listVaults(ctx, req, op, done)
}

func (op Create) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.create(ctx, req, op, done)
}

func (op ReadConfig) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.readConfig(ctx, req, op, done)
}

func (op Configure) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.configure(ctx, req, op, done)
}

func (op Purge) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.purge(ctx, req, op, done)
}

func (op Delete) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.delete(ctx, req, op, done)
}

func (op Subscribe) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.subscribe(ctx, req, op, done)
}

func (op Unsubscribe) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.unsubscribe(ctx, req, op, done)
}

func (op ListSubscriptions) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.listSubscriptions(ctx, req, op, done)
}

func (op ReadOptions) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.readOptions(ctx, req, op, done)
}

func (op ListAffiliations) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.listAffiliations(ctx, req, op, done)
}

func (op ReadAffiliations) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.readAffiliations(ctx, req, op, done)
}

func (op BeginBatch) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.beginBatch(ctx, req, op, done)
}

func (op Unstage) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.unstage(ctx, req, op, done)
}

func (op CommitBatch) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.commitBatch(ctx, req, op, done)
}

func (op SetOptions) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.setOptions(ctx, req, op, done)
}

func (op SetAffiliations) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.setAffiliations(ctx, req, op, done)
}

func (op AbortBatch) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.abortBatch(ctx, req, op, done)
}

func (Erase) do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error {
	return e.Erase(ctx, req.Owner, done)
}

func (DescribeService) do(_ context.Context, e *Engine, _ Request, done func(Outcome)) error {
	done(Outcome{Answer: e.describeService()})
	return nil
}

func (DefaultConfig) do(_ context.Context, e *Engine, _ Request, done func(Outcome)) error {
	done(Outcome{Answer: ConfigForm{Form: e.configForm(vault.Config{})}})
	return nil
}
