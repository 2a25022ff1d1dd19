// Package langchain lets a pipeline and its parts be used inside langchaingo,
// and langchaingo's parts inside a pipeline.
//
//	ours                     langchaingo
//	*pipeline.Pipeline    -> chains.Chain            NewChain
//	*pipeline.Pipeline    -> llms.Model              NewModel
//	retrieval.Retriever   -> schema.Retriever        NewRetriever
//	retrieval.Retriever  <-  schema.Retriever        FromRetriever
//	retrieval.Store       -> vectorstores.VectorStore NewVectorStore
//	retrieval.Retriever  <-  vectorstores.VectorStore FromVectorStore
//	conversation.Store    -> schema.ChatMessageHistory NewChatHistory
//	conversation.Store   <-  schema.ChatMessageHistory Import
//	generation.Generator <-  llms.Model              generation.Model
//
// The embedder needs nothing: retrieval.Embedder and embeddings.Embedder have
// the same methods.
//
// Options of langchaingo that a part cannot honour are refused with an error,
// never ignored.
package langchain
